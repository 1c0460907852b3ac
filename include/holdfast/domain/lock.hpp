#ifndef HOLDFAST_DOMAIN_LOCK_HPP
#define HOLDFAST_DOMAIN_LOCK_HPP

#include "holdfast/domain/fencing_token.hpp"
#include "holdfast/domain/owner_name.hpp"
#include "holdfast/domain/resource_name.hpp"
#include "holdfast/domain/timestamp.hpp"

#include <chrono>
#include <utility>

namespace holdfast::domain {

/// The record that a resource was held when the database read its clock for this answer.
class lock {
public:
    /// `expires_in` is what was left at that reading, rounded down to milliseconds, at most the TTL.
    lock(resource_name resource, owner_name owner, timestamp acquired_at, timestamp expires_at,
         std::chrono::milliseconds expires_in, fencing_token token)
        : resource_(std::move(resource)),
          owner_(std::move(owner)),
          acquired_at_(acquired_at),
          expires_at_(expires_at),
          expires_in_(expires_in),
          token_(token) {}

    const resource_name& resource() const noexcept { return resource_; }
    const owner_name& owner() const noexcept { return owner_; }
    timestamp acquired_at() const noexcept { return acquired_at_; }
    timestamp expires_at() const noexcept { return expires_at_; }
    std::chrono::milliseconds expires_in() const noexcept { return expires_in_; }
    domain::fencing_token fencing_token() const noexcept { return token_; }

    friend bool operator==(const lock&, const lock&) = default;

private:
    resource_name resource_;
    owner_name owner_;
    timestamp acquired_at_;
    timestamp expires_at_;
    std::chrono::milliseconds expires_in_;
    domain::fencing_token token_;
};

}  // namespace holdfast::domain

#endif
