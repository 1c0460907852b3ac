#ifndef HOLDFAST_PG_OPERATION_HPP
#define HOLDFAST_PG_OPERATION_HPP

#include "holdfast/pg/backend.hpp"

#include <boost/asio/any_completion_handler.hpp>

#include <atomic>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>

namespace holdfast::pg {

struct operation;
using operation_ptr = std::shared_ptr<operation>;
using open_operations = std::pmr::multimap<store::deadline, operation_ptr>;
using answer_handler = boost::asio::any_completion_handler<void(boost::system::error_code, answer)>;

/// One command on its way: waiting (in the queue) -> under way (taken by a thread) -> ended. Whether it still waits is
/// decided under the queue's mutex alone: a thread takes it, or the I/O thread withdraws it, never both. Completed
/// once, on the I/O thread, by the first of answer, deadline and cancellation.
struct operation {
    operation(pg::command command, store::deadline until) : what(std::move(command)), until(until) {}

    const pg::command what;
    const store::deadline until;

    /// Nobody waits for the answer any more; a thread that still holds it back need not send it.
    std::atomic<bool> abandoned{false};

    // Owned by whoever holds the operation: the queue under its mutex, or the thread that took it.
    std::optional<std::chrono::steady_clock::time_point> busy_since;  ///< When its row was first found locked.
    std::optional<answer> result;                                     ///< Read on the I/O thread after the end.
    std::optional<store::standing> after;                             ///< What its row said then, for those behind it.

    // I/O thread only.
    store::ticket ticket = 0;
    std::optional<answer_handler> handler;  ///< Empty once completed. Emplaced, never assigned (Asio 1.26).
    std::optional<open_operations::iterator> open_at;
};

}  // namespace holdfast::pg

#endif
