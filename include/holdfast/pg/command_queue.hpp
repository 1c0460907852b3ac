#ifndef HOLDFAST_PG_COMMAND_QUEUE_HPP
#define HOLDFAST_PG_COMMAND_QUEUE_HPP

#include "holdfast/pg/operation.hpp"
#include "holdfast/store/batch_planner.hpp"

#include <condition_variable>
#include <deque>
#include <mutex>

namespace holdfast::pg {

/// The bounded queue between the I/O thread and the connection threads. Any thread. Never blocks the I/O thread for
/// longer than it takes to move a batch.
class command_queue {
public:
    using planner = store::batch_planner<operation_ptr>;
    using batch = planner::batch;

    command_queue(std::size_t waiting_max, std::size_t rows_max)
        : planner_(waiting_max, rows_max), waiting_max_(waiting_max) {}

    /// Nothing when queued (the operation then has its ticket), else why not: `overloaded` when full, `unavailable`
    /// when no connection is up or the queue is closed.
    std::optional<domain::errc> push(const operation_ptr& operation);

    /// Takes an operation back that still waits; false when a thread has it.
    bool withdraw(const operation& operation);

    /// The next batch for a thread of this lane; waits for one up to `wait`. Empty when none came or the queue is
    /// closed. Writes hold their resources until they are finished, put back or handed to the slow lane.
    batch take(lane lane, std::chrono::milliseconds wait);

    /// These were taken and not sent.
    void put_back(batch batch);
    /// These have ended: the next writes for their resources may run.
    void finish(const batch& ended);
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
    batch take_slow_locked();

    mutable std::mutex mutex_;
    std::condition_variable fast_;
    std::condition_variable slow_;
    std::condition_variable closing_;
    planner planner_;
    std::deque<planner::item> busy_;  ///< The slow lane: one write per resource, in turn.
    std::size_t waiting_max_;
    std::size_t connections_ = 0;
    bool closed_ = false;
};

}  // namespace holdfast::pg

#endif
