#ifndef HOLDFAST_PG_COMMAND_QUEUE_HPP
#define HOLDFAST_PG_COMMAND_QUEUE_HPP

#include "holdfast/pg/operation.hpp"
#include "holdfast/store/batch_planner.hpp"

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace holdfast::pg {

/// The bounded queue between the I/O thread and the connection threads. Any thread. Never blocks the I/O thread for
/// longer than it takes to move a batch.
class command_queue {
public:
    using planner = store::batch_planner<operation_ptr>;
    using batch = planner::batch;

    command_queue(std::size_t waiting_max, std::size_t rows_max)
        : planner_(waiting_max, rows_max), waiting_max_(waiting_max), rows_max_(rows_max) {}

    /// How long less than a full batch waits for the end of one that is under way: longer than nearly every statement
    /// takes. One that has taken longer is waited for no more.
    static constexpr std::chrono::milliseconds held_back_max{20};

    /// Nothing when queued (the operation then has its ticket), else why not: `overloaded` when full, `unavailable`
    /// when no connection is up or the queue is closed. Wakes nobody, so that what arrives together goes together: call
    /// announce() after the last one.
    std::optional<domain::errc> push(const operation_ptr& operation);
    /// Wakes a thread if there is something that it may take now. What is held back by a batch under way is taken by
    /// that one's thread, unless it is stuck: the result says when to announce again, to see.
    std::optional<std::chrono::steady_clock::time_point> announce();

    /// Takes an operation back that still waits; false when a thread has it.
    bool withdraw(const operation& operation);

    /// The next batch for a thread of this lane; waits for one up to `wait`. Empty when none came or the queue is
    /// closed. Writes hold their resources until they are finished, put back or handed to the slow lane. While another
    /// batch of the fast lane is under way, one that is not full is held back: fewer and larger statements cost less,
    /// but one that is stuck must not hold up the others. The thread that rested last is woken first: its session is
    /// still in the processor's caches.
    batch take(lane lane, std::chrono::milliseconds wait);
    /// A batch that take(lane) returned is no longer under way; called once for each, after the calls below, by the
    /// thread that took it. One of the fast lane then goes on to take(), or calls announce().
    void end_batch(lane lane);

    /// These were taken and not sent.
    void put_back(batch batch);
    /// Pairs that had no effect: each release comes again by itself, before its acquire. Also one whose client has
    /// left: it was sent, and its own statement would have carried it out.
    void put_apart(batch pairs);
    /// These have ended: the next writes for their resources may run. Returns those who followed: they were waiting
    /// behind one of these when it was taken, and what its row said then answers them too. They have their result.
    std::vector<operation_ptr> finish(const batch& ended);
    /// Their rows are locked by somebody: to the end of the slow lane, keeping their resources. Returns what must be
    /// failed with `overloaded` instead: those whose rows have been locked for `lock_timeout`, with everybody who waits
    /// behind them. None of them had an effect.
    std::vector<operation_ptr> wait_for_rows(batch busy, std::chrono::milliseconds lock_timeout);

    /// A connection of the fast lane came up or went down. When the last one is down, returns everything that waited:
    /// fail it with `unavailable`.
    void connection_up();
    std::vector<operation_ptr> connection_down();
    bool connected() const;
    /// Commands that wait, on either lane.
    std::size_t size() const;

    /// No more commands; threads return from take() and pause(). Returns everything that waited, as above.
    std::vector<operation_ptr> close();
    bool closed() const;
    /// Waits for `length`, or until the queue is closed.
    void pause(std::chrono::milliseconds length);

private:
    std::vector<operation_ptr> empty_locked();
    void finish_locked(const planner::item& ended);
    void announce_locked();
    void rest_locked(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point until);
    std::chrono::steady_clock::time_point held_back_until_locked() const;
    bool may_start_locked(std::chrono::steady_clock::time_point now) const;
    batch take_fast_locked(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds wait);
    batch take_slow_locked();
    void take_neighbours_locked(batch& taken);

    mutable std::mutex mutex_;
    std::vector<std::condition_variable*> resting_;  ///< Threads of the fast lane, the latest last.
    std::condition_variable slow_;
    std::condition_variable closing_;
    planner planner_;
    /// The slow lane, in turn: one write per resource, or several commands on its waiting line.
    std::deque<planner::item> busy_;
    std::size_t waiting_max_;
    std::size_t rows_max_;
    std::size_t connections_ = 0;
    /// Threads of the fast lane with a batch, and since when.
    std::map<std::thread::id, std::chrono::steady_clock::time_point> under_way_;
    bool closed_ = false;
};

}  // namespace holdfast::pg

#endif
