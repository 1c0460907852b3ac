#ifndef HOLDFAST_DOMAIN_QUEUE_OUTCOMES_HPP
#define HOLDFAST_DOMAIN_QUEUE_OUTCOMES_HPP

// What a queue of waiters answers. `wakes` says whom the command concerns beside the one who asked: they are told after
// the commit.

#include "holdfast/domain/lock.hpp"
#include "holdfast/domain/outcomes.hpp"
#include "holdfast/domain/place.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::domain {

/// The owner is holder now. Its place, if it had one, is gone.
struct queue_grant {
    explicit queue_grant(domain::lock lock) : lock(std::move(lock)) {}

    domain::lock lock;
};

/// The request has the place, `position` is 1 for the first, kept places counted, and the lease before it ends by
/// itself after `ends_in` (rounded up; at least 0).
struct queue_standing {
    queue_standing(domain::place place, std::size_t position, std::chrono::milliseconds ends_in)
        : place(std::move(place)), position(position), ends_in(ends_in) {}

    domain::place place;
    std::size_t position;
    std::chrono::milliseconds ends_in;
};

/// Refused without a place: the request did not wait.
struct queue_refusal {
    /// As of acquire_outcome::held.
    explicit queue_refusal(std::chrono::milliseconds retry_after) : retry_after(retry_after) {}

    std::chrono::milliseconds retry_after;
};

/// Refused: as many places as a resource may have are taken.
struct queue_full {};

struct stand_outcome {
    std::variant<queue_grant, queue_standing, queue_refusal, queue_full> answer;
    std::vector<wake> wakes;
};

/// Nothing is offered to this place now. `ends_in` as of queue_standing; 0: the lease before it has ended. `is_kept`:
/// it is a living place no more (an offer to it was not confirmed in time), and will be offered nothing until its owner
/// stands again.
struct not_offered {
    explicit not_offered(std::chrono::milliseconds ends_in, bool is_kept = false)
        : ends_in(ends_in), is_kept(is_kept) {}

    std::chrono::milliseconds ends_in;
    bool is_kept;
};

/// Another request of the owner has taken the place over, or got the lock, or the owner has left; or the place was kept
/// too long. A claim whose own grant under its key is live is told that grant instead.
struct place_gone {};

using claim_outcome = std::variant<queue_grant, not_offered, place_gone>;

/// The place is kept. `retry_after` as of acquire_outcome::held.
struct place_kept {
    place_kept(std::size_t position, std::chrono::milliseconds retry_after)
        : position(position), retry_after(retry_after) {}

    std::size_t position;
    std::chrono::milliseconds retry_after;
};

struct withdraw_outcome {
    std::variant<place_kept, place_gone> answer;
    std::vector<wake> wakes;
};

/// `not_found`: the owner has no place, or holds the lock already.
enum class leave_result { left, not_found };

struct leave_outcome {
    leave_result result = leave_result::not_found;
    std::vector<wake> wakes;
};

/// A waiter of the node that asked was granted the lock at once. Its place is gone.
struct handover {
    handover(std::int64_t place_number, std::int64_t attachment, domain::lock lock)
        : place_number(place_number), attachment(attachment), lock(std::move(lock)) {}

    std::int64_t place_number;
    std::int64_t attachment;
    domain::lock lock;
};

struct hand_over_outcome {
    /// When the lease (or offer) that stands now ends; nothing when nobody holds the lock and no living waiter is
    /// there.
    std::optional<std::chrono::milliseconds> ends_in;
    std::vector<wake> wakes;
    std::optional<handover> handed = std::nullopt;
};

struct queue_release_outcome {
    release_result result = release_result::not_found;  ///< Never `awaited`.
    std::vector<wake> wakes;
    std::optional<handover> handed = std::nullopt;
};

/// One place of a node, as the regular survey finds it.
struct surveyed_place {
    surveyed_place(domain::place place, bool offered, std::chrono::milliseconds ends_in)
        : place(std::move(place)), offered(offered), ends_in(ends_in) {}

    domain::place place;
    bool offered;
    std::chrono::milliseconds ends_in;  ///< As of queue_standing.
};

}  // namespace holdfast::domain

#endif
