#ifndef HOLDFAST_STORE_WAIT_QUEUE_HPP
#define HOLDFAST_STORE_WAIT_QUEUE_HPP

// clang-format off
// The waiting line (contract, section 8): one queue per resource across all nodes.
//
// What is in the database
//   the lock's row
//     places          how many places there are for this resource. Changed only with the row locked. The fast statements
//                     keep off a row with places where it matters and answer `awaited`; then the commands below take over.
//                     They lock the row first and read the places in a later statement, whose snapshot is younger than the
//                     lock.
//     offered_place   the lease is an offer to that place, not yet confirmed.
//     in_delivery     the lease was granted to a request that waits, or would have, and nobody but its node has answered
//                     with it, so that it may be given back: the attachment of the place that was granted it at once, else 0.
//   a waiter's row    its place: resource, number, owner, node, attachment, kept_until, and what it asked for. Changed only
//                     with the lock's row locked. Locks are taken by the bytes of the resource, then places.
//   a node's row      when it last said that it lives (beat). A node that was silent for `node_dead_after` has no living
//                     waiters.
//
// States of a place
//   living    attached to a request on a living node, and not kept
//   kept      kept_until is in the future, or its node died no longer ago than that: keeps its order, is never offered to
//   gone      deleted: granted, left, or kept too long
// and who changes them
//   living -> offered -> gone   (the row's offered_place names it.) By whoever releases or hands over; then by its own node
//                               only, in claim(), which sees the client still connected.
//   living -> gone              at once, where the node that releases or hands over is the waiter's own and says so (`at`):
//                               offer and confirmation are one, and `handed` tells the node.
//   offered -> kept             by whoever hands over after the offer has ended, as a lease does, after `offer_length`.
//   living -> kept              by its own node, in withdraw().
//   kept -> living              its owner asks again, on any node, with a new attachment; the number stays.
//
// Who is woken beside the one who asks
//   stand                           the older request of the owner, whose place or grant it takes; who is offered the lock
//   withdraw, hand_over, release    who is offered the lock; who did not confirm an offer in time
//   leave                           the request whose place it was; who is offered the lock
//   A woken request claims, and hears what has become of its place and of the lease before it.
//
// What a crash leaves behind
//   the node of a waiter        the place, living for up to node_dead_after; an offer to it passes on when it ends, and not
//                               to the next of that node, unless it has beaten since
//   the node of a releaser      either nothing has happened, or the offer stands and its node finds it by survey at the
//                               latest
//   between grant and answer    a lease that its owner has again by asking, else it ends by itself; as with an acquire that
//                               does not wait, nobody can tell whether the answer has arrived
//   between commit and NOTIFY   the survey finds it
// clang-format on

#include "holdfast/domain/errc.hpp"
#include "holdfast/domain/queue_commands.hpp"
#include "holdfast/domain/queue_outcomes.hpp"
#include "holdfast/store/lease_store.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

namespace holdfast::store {

/// How long an offer waits for its confirmation.
inline constexpr std::chrono::seconds offer_length{2};
/// How long a place is kept after its request has ended.
inline constexpr std::chrono::seconds place_kept_for{5};
/// How long a node's silence is taken for life.
inline constexpr std::chrono::seconds node_dead_after{3};

/// Commands on queues. Threads, deadlines, failures and cancellation as of lease_store. All but announce and
/// announce_moved are one transaction each.
class wait_queue {
public:
    virtual ~wait_queue() = default;

    virtual boost::asio::awaitable<domain::result<domain::stand_outcome>> stand(domain::stand_command command,
                                                                                deadline deadline) = 0;
    virtual boost::asio::awaitable<domain::result<domain::claim_outcome>> claim(domain::claim_command command,
                                                                                deadline deadline) = 0;
    virtual boost::asio::awaitable<domain::result<domain::withdraw_outcome>> withdraw(domain::withdraw_command command,
                                                                                      deadline deadline) = 0;
    virtual boost::asio::awaitable<domain::result<domain::leave_outcome>> leave(domain::leave_command command,
                                                                                deadline deadline) = 0;
    virtual boost::asio::awaitable<domain::result<domain::hand_over_outcome>> hand_over(
        domain::hand_over_command command, deadline deadline) = 0;
    virtual boost::asio::awaitable<domain::result<domain::queue_release_outcome>> release(
        domain::queue_release_command command, deadline deadline) = 0;

    /// Tells nodes to look at places again. Coalesced; sent soon, without promise: the survey is the floor.
    virtual void announce(std::vector<domain::wake> wakes) = 0;
    /// Tells every node with living waiters for `resource` that the end of its lease has moved. One place of a node
    /// stands for all that it has there.
    virtual void announce_moved(domain::resource_name resource) = 0;

    /// What the queue tells this node. Called on the I/O thread, never inside a call to the queue.
    struct events {
        /// Look at these places again.
        std::function<void(std::vector<std::int64_t> place_numbers)> woken;
        /// All places of this node that are not kept, as they were a moment ago: after `began`, on this process's
        /// clock.
        std::function<void(std::vector<domain::surveyed_place> places, std::chrono::steady_clock::time_point began)>
            surveyed;
    };
    /// Before the start, once.
    virtual void listen(events events) = 0;

    /// Who this node is; nothing while the database has not said so yet, or could not be told for too long that it
    /// lives: nobody can wait here then.
    virtual std::optional<domain::node_id> node() const noexcept = 0;
};

}  // namespace holdfast::store

#endif
