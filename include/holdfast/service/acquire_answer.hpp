#ifndef HOLDFAST_SERVICE_ACQUIRE_ANSWER_HPP
#define HOLDFAST_SERVICE_ACQUIRE_ANSWER_HPP

#include "holdfast/domain/lock.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>
#include <variant>

namespace holdfast::service {

/// The asker is holder.
struct grant {
    explicit grant(domain::lock lock) : lock(std::move(lock)) {}

    domain::lock lock;
    /// How long the request stood in line before the statement was sent that read the lock; nothing if it did not ask
    /// to wait.
    std::optional<std::chrono::milliseconds> waited;
    /// Gives a lock that was waited for back: call it, at most once and on the I/O thread, when the answer could not be
    /// delivered. Empty: the lease ends by itself.
    std::function<void()> undelivered;
};

/// A place that is kept for the owner's next request.
struct kept_place {
    std::size_t position = 0;  ///< 1 for the first.
    std::chrono::milliseconds kept_for{0};
};

/// Held by another owner.
struct refusal {
    explicit refusal(std::chrono::milliseconds retry_after, std::optional<kept_place> place = std::nullopt)
        : retry_after(retry_after), place(place) {}

    std::chrono::milliseconds retry_after;  ///< As of domain::acquire_outcome::held.
    std::optional<kept_place>
        place;  ///< Nothing if the owner has none (any more): it did not wait, left, or asks anew.
};

/// All places for the resource are taken.
struct queue_full {};

using acquire_answer = std::variant<grant, refusal, queue_full>;

}  // namespace holdfast::service

#endif
