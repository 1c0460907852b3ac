#ifndef HOLDFAST_PG_ERROR_CLASS_HPP
#define HOLDFAST_PG_ERROR_CLASS_HPP

#include "holdfast/domain/errc.hpp"
#include "holdfast/store/batch_planner.hpp"

#include <string_view>

namespace holdfast::pg {

/// What may be said about a command whose statement failed (contract, section 5). `sqlstate` is empty when the
/// connection was lost without a word from the server. A look changes nothing, so its lost answer is merely
/// unavailable.
domain::errc classify_failure(bool sent, std::string_view sqlstate, store::command_kind kind) noexcept;

/// The server undid the statement because of its neighbours; the same statement may succeed now (40001, 40P01).
bool worth_repeating(std::string_view sqlstate) noexcept;

/// A row stayed locked for longer than the statement was willing to wait (55P03).
bool row_stayed_locked(std::string_view sqlstate) noexcept;

/// The session cannot write (25006): drop it, another may reach the primary.
bool session_is_read_only(std::string_view sqlstate) noexcept;

}  // namespace holdfast::pg

#endif
