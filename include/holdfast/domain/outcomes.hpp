#ifndef HOLDFAST_DOMAIN_OUTCOMES_HPP
#define HOLDFAST_DOMAIN_OUTCOMES_HPP

// What a store answers. Closed enums, switched over without `default:`, so that a new value is a compile error wherever
// somebody must think about it.

#include "holdfast/domain/lock.hpp"

#include <chrono>
#include <optional>
#include <utility>

namespace holdfast::domain {

enum class acquire_result { granted, held };

class acquire_outcome {
public:
    static acquire_outcome granted(lock grant) { return acquire_outcome(std::move(grant), {}); }
    /// `retry_after` is what is left of the present lease, rounded up; at least 1 ms.
    static acquire_outcome held(std::chrono::milliseconds retry_after) {
        return acquire_outcome(std::nullopt, retry_after);
    }

    acquire_result result() const noexcept { return grant_ ? acquire_result::granted : acquire_result::held; }
    /// The grant. Only when granted.
    const lock& grant() const noexcept { return *grant_; }
    /// Only when held.
    std::chrono::milliseconds retry_after() const noexcept { return retry_after_; }

private:
    acquire_outcome(std::optional<lock> grant, std::chrono::milliseconds retry_after)
        : grant_(std::move(grant)), retry_after_(retry_after) {}

    std::optional<lock> grant_;
    std::chrono::milliseconds retry_after_;
};

/// `forbidden`: held, but by another owner or under another token. `not_found`: nobody holds it.
enum class renew_result { renewed, not_found, forbidden };

class renew_outcome {
public:
    static renew_outcome renewed(domain::lock lock) { return renew_outcome(renew_result::renewed, std::move(lock)); }
    static renew_outcome not_found() { return renew_outcome(renew_result::not_found, std::nullopt); }
    static renew_outcome forbidden() { return renew_outcome(renew_result::forbidden, std::nullopt); }

    renew_result result() const noexcept { return result_; }
    /// The lease as it is now. Only when renewed.
    const domain::lock& lock() const noexcept { return *lock_; }

private:
    renew_outcome(renew_result result, std::optional<domain::lock> lock) : result_(result), lock_(std::move(lock)) {}

    renew_result result_;
    std::optional<domain::lock> lock_;
};

/// `forbidden` and `not_found` as for renew.
enum class release_result { released, not_found, forbidden };

enum class look_result { found, not_found };

class look_outcome {
public:
    static look_outcome found(domain::lock lock) { return look_outcome(std::move(lock)); }
    static look_outcome not_found() { return look_outcome(std::nullopt); }

    look_result result() const noexcept { return lock_ ? look_result::found : look_result::not_found; }
    /// Only when found.
    const domain::lock& lock() const noexcept { return *lock_; }

private:
    explicit look_outcome(std::optional<domain::lock> lock) : lock_(std::move(lock)) {}

    std::optional<domain::lock> lock_;
};

}  // namespace holdfast::domain

#endif
