#include "holdfast/pg/error_class.hpp"

namespace holdfast::pg {

using domain::errc;

errc classify_failure(bool sent, std::string_view sqlstate, store::command_kind kind) noexcept {
    if (!sent) return errc::unavailable;
    const std::string_view group = sqlstate.substr(0, 2);
    const bool cut_off = sqlstate.empty() || group == "08" || sqlstate.substr(0, 4) == "57P0";
    if (cut_off) return kind == store::command_kind::look ? errc::unavailable : errc::outcome_unknown;
    if (row_stayed_locked(sqlstate) || sqlstate == "57014" || worth_repeating(sqlstate)) return errc::overloaded;
    if (session_is_read_only(sqlstate) || group == "53") return errc::unavailable;
    return errc::internal;
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
