#ifndef HOLDFAST_PG_ERROR_CLASS_HPP
#define HOLDFAST_PG_ERROR_CLASS_HPP

#include "holdfast/domain/errc.hpp"
#include "holdfast/store/batch_planner.hpp"

#include <cstddef>
#include <string_view>

namespace holdfast::pg {

/// What may be said about a command whose statement failed (contract, section 5). `sqlstate` is empty when the
/// connection was lost without a word from the server. A look changes nothing, so its lost answer is merely
/// unavailable.
domain::errc classify_failure(bool sent, std::string_view sqlstate, store::command_kind kind) noexcept;

/// What went wrong with a statement or a session, as an operator tells it apart. Closed: metrics have one series each.
enum class failure_class {
    cannot_connect,    ///< No session, or one that cannot write.
    connection_lost,   ///< Class 08, 57P01 to 57P03, or no word at all.
    row_locked,        ///< 55P03: the wait for a row was cut off; each slice of waiting on the slow lane ends so.
    timed_out,         ///< 57014: the statement's time limit, or somebody cancelled it.
    deadlock,          ///< 40P01
    serialization,     ///< 40001
    read_only,         ///< 25006
    out_of_resources,  ///< Class 53: memory, disk, connections.
    constraint,        ///< Class 23
    refused,           ///< Class 42: not there, not permitted, not understood by the server.
    not_understood,    ///< The answer was not understood here: a bug.
    other,
};

inline constexpr std::size_t failure_classes = 12;

/// The class of a statement that failed after it was sent; `sqlstate` is empty when the connection was lost.
failure_class failure_class_of(std::string_view sqlstate) noexcept;

/// The server undid the statement because of its neighbours; the same statement may succeed now (40001, 40P01).
bool worth_repeating(std::string_view sqlstate) noexcept;

/// A row stayed locked for longer than the statement was willing to wait (55P03).
bool row_stayed_locked(std::string_view sqlstate) noexcept;

/// The session cannot write (25006): drop it, another may reach the primary.
bool session_is_read_only(std::string_view sqlstate) noexcept;

}  // namespace holdfast::pg

#endif
