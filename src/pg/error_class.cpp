#include "holdfast/pg/error_class.hpp"

namespace holdfast::pg {

using domain::errc;

namespace {

bool connection_ended(std::string_view sqlstate) noexcept {
    return sqlstate.empty() || sqlstate.substr(0, 2) == "08" || sqlstate.substr(0, 4) == "57P0";
}

}  // namespace

errc classify_failure(bool sent, std::string_view sqlstate, store::command_kind kind) noexcept {
    if (!sent) return errc::unavailable;
    const std::string_view group = sqlstate.substr(0, 2);
    if (connection_ended(sqlstate)) return store::is_write(kind) ? errc::outcome_unknown : errc::unavailable;
    if (row_stayed_locked(sqlstate) || sqlstate == "57014" || worth_repeating(sqlstate)) return errc::overloaded;
    if (session_is_read_only(sqlstate) || group == "53") return errc::unavailable;
    return errc::internal;
}

failure_class failure_class_of(std::string_view sqlstate) noexcept {
    const std::string_view group = sqlstate.substr(0, 2);
    if (connection_ended(sqlstate)) return failure_class::connection_lost;
    if (row_stayed_locked(sqlstate)) return failure_class::row_locked;
    if (sqlstate == "57014") return failure_class::timed_out;
    if (sqlstate == "40P01") return failure_class::deadlock;
    if (sqlstate == "40001") return failure_class::serialization;
    if (session_is_read_only(sqlstate)) return failure_class::read_only;
    if (group == "53") return failure_class::out_of_resources;
    if (group == "23") return failure_class::constraint;
    if (group == "42") return failure_class::refused;
    return failure_class::other;
}

bool worth_repeating(std::string_view sqlstate) noexcept {
    return sqlstate == "40001" || sqlstate == "40P01";
}

bool row_stayed_locked(std::string_view sqlstate) noexcept {
    return sqlstate == "55P03";
}

bool session_is_read_only(std::string_view sqlstate) noexcept {
    return sqlstate == "25006";
}

}  // namespace holdfast::pg
