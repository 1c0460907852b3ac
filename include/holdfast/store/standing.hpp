#ifndef HOLDFAST_STORE_STANDING_HPP
#define HOLDFAST_STORE_STANDING_HPP

// How a command to one resource answers those that were waiting behind it. Pure.

#include "holdfast/domain/commands.hpp"
#include "holdfast/domain/lock.hpp"
#include "holdfast/domain/outcomes.hpp"

#include <optional>

namespace holdfast::store {

/// What the row of a resource said at a moment during a command to it: read from the locked row and its clock, or,
/// where another owner held it, from what was committed when the command's statement began.
class standing {
public:
    /// Nobody holds the resource.
    static standing free() { return standing(std::nullopt, {}, std::nullopt); }
    /// `lock` was live at `read_at`. `key` is that of the grant; none where it has none or is not known.
    static standing held(domain::lock lock, domain::timestamp read_at,
                         std::optional<domain::idempotency_key> key = std::nullopt) {
        return standing(std::move(lock), read_at, std::move(key));
    }

    /// Nothing when nobody holds it.
    const std::optional<domain::lock>& lock() const noexcept { return lock_; }
    const std::optional<domain::idempotency_key>& key() const noexcept { return key_; }
    /// What was left of the lease, rounded up. Only when held.
    std::chrono::milliseconds left() const {
        return std::chrono::ceil<std::chrono::milliseconds>(lock_->expires_at() - read_at_);
    }

private:
    standing(std::optional<domain::lock> lock, domain::timestamp read_at, std::optional<domain::idempotency_key> key)
        : lock_(std::move(lock)), read_at_(read_at), key_(std::move(key)) {}

    std::optional<domain::lock> lock_;
    domain::timestamp read_at_;
    std::optional<domain::idempotency_key> key_;
};

/// What serial execution right at that reading would have answered, if it would have written nothing. Otherwise
/// nothing: the command has to be carried out. The caller vouches that the command was waiting before the reading.
std::optional<domain::acquire_outcome> follow(const standing& standing, const domain::acquire_command& command);
std::optional<domain::renew_outcome> follow(const standing& standing, const domain::renew_command& command);
std::optional<domain::release_result> follow(const standing& standing, const domain::release_command& command);

}  // namespace holdfast::store

#endif
