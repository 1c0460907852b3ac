#ifndef HOLDFAST_DOMAIN_OUTCOMES_HPP
#define HOLDFAST_DOMAIN_OUTCOMES_HPP

// What a store answers. Closed enums, switched over without `default:`, so that a new value is a compile error wherever
// somebody must think about it.

#include "holdfast/domain/lock.hpp"

#include <chrono>
#include <optional>
#include <utility>

namespace holdfast::domain {

/// `awaited`: waiters may be concerned, nothing was done; the queue decides (store/wait_queue.hpp).
enum class acquire_result { granted, held, awaited };

class acquire_outcome {
public:
    /// `is_awaited`: somebody may wait for the lock, and the end of its lease has moved.
    static acquire_outcome granted(lock grant, bool is_awaited = false) {
        return acquire_outcome(acquire_result::granted, std::move(grant), {}, is_awaited);
    }
    /// `retry_after` is what is left of the present lease, rounded up; at least 1 ms.
    static acquire_outcome held(std::chrono::milliseconds retry_after) {
        return acquire_outcome(acquire_result::held, std::nullopt, retry_after, false);
    }
    static acquire_outcome awaited() { return acquire_outcome(acquire_result::awaited, std::nullopt, {}, true); }

    acquire_result result() const noexcept { return result_; }
    /// The grant. Only when granted.
    const lock& grant() const& noexcept { return *grant_; }
    lock grant() && { return *std::move(grant_); }
    /// Only when held.
    std::chrono::milliseconds retry_after() const noexcept { return retry_after_; }
    /// Somebody may wait for the lock. Only when granted.
    bool is_awaited() const noexcept { return is_awaited_; }

private:
    acquire_outcome(acquire_result result, std::optional<lock> grant, std::chrono::milliseconds retry_after,
                    bool is_awaited)
        : grant_(std::move(grant)), retry_after_(retry_after), result_(result), is_awaited_(is_awaited) {}

    std::optional<lock> grant_;
    std::chrono::milliseconds retry_after_;
    acquire_result result_;
    bool is_awaited_;
};

/// `forbidden`: held, but by another owner or under another token. `not_found`: nobody holds it.
enum class renew_result { renewed, not_found, forbidden };

class renew_outcome {
public:
    /// `is_awaited` as of acquire_outcome.
    static renew_outcome renewed(domain::lock lock, bool is_awaited = false) {
        return renew_outcome(renew_result::renewed, std::move(lock), is_awaited);
    }
    static renew_outcome not_found() { return renew_outcome(renew_result::not_found, std::nullopt, false); }
    static renew_outcome forbidden() { return renew_outcome(renew_result::forbidden, std::nullopt, false); }

    renew_result result() const noexcept { return result_; }
    /// The lease as it is now. Only when renewed.
    const domain::lock& lock() const noexcept { return *lock_; }
    /// Somebody may wait for the lock. Only when renewed.
    bool is_awaited() const noexcept { return is_awaited_; }

private:
    renew_outcome(renew_result result, std::optional<domain::lock> lock, bool is_awaited)
        : result_(result), lock_(std::move(lock)), is_awaited_(is_awaited) {}

    renew_result result_;
    std::optional<domain::lock> lock_;
    bool is_awaited_;
};

/// `forbidden` and `not_found` as for renew, `awaited` as for acquire.
enum class release_result { released, not_found, forbidden, awaited };

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
