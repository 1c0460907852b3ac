#ifndef HOLDFAST_CLI_LOAD_REPORT_TEXT_HPP
#define HOLDFAST_CLI_LOAD_REPORT_TEXT_HPP

#include "holdfast/cli/load_test.hpp"

#include <string>

namespace holdfast::cli {

/// A table for people.
std::string to_table(const load_plan& plan, const load_report& report);

/// One line of JSON: mode, connections, seconds, pairs_per_second or answers_per_second, refused, errors (total and by
/// kind), latencies_ms by kind (count, p50, p99, p999, max), idle_connections.
std::string to_json(const load_plan& plan, const load_report& report);

}  // namespace holdfast::cli

#endif
