#ifndef HOLDFAST_CLI_ANSWER_TEXT_HPP
#define HOLDFAST_CLI_ANSWER_TEXT_HPP

#include "holdfast/client/http_connection.hpp"
#include "holdfast/domain/timestamp.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::cli {

// Under load answers are searched for what matters instead of parsed: the generator shares its cores with what it
// measures.

/// The name in a problem's `type`, or nothing.
std::string_view problem_name(std::string_view body);

/// What an unexpected answer counts as: its status, and the problem it tells.
std::string label_of(const client::answer& answer);

/// True when `part` stands somewhere in it.
bool holds(std::string_view body, std::string_view part);

/// The number behind `mark`, e.g. `"fencing_token":`.
std::optional<std::int64_t> number_after(std::string_view body, std::string_view mark);

/// The moment behind `mark`, e.g. `"acquired_at":`, written as domain::to_rfc3339 does.
std::optional<domain::timestamp> moment_after(std::string_view body, std::string_view mark);

}  // namespace holdfast::cli

#endif
