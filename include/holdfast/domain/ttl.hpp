#ifndef HOLDFAST_DOMAIN_TTL_HPP
#define HOLDFAST_DOMAIN_TTL_HPP

#include "holdfast/domain/field_fault.hpp"

#include <chrono>
#include <cstdint>

namespace holdfast::domain {

/// How long a lease lasts: whole seconds, at least one.
class ttl {
public:
    /// Refuses with `out_of_range` what is below 1 or above `ttl_seconds_max`.
    static validated<ttl> parse(std::int64_t ttl_seconds, std::int64_t ttl_seconds_max) noexcept;

    std::chrono::seconds length() const noexcept { return length_; }

    friend bool operator==(const ttl&, const ttl&) = default;

private:
    explicit ttl(std::chrono::seconds length) noexcept : length_(length) {}

    std::chrono::seconds length_;
};

}  // namespace holdfast::domain

#endif
