#ifndef HOLDFAST_CLI_LOAD_REPORT_TEXT_HPP
#define HOLDFAST_CLI_LOAD_REPORT_TEXT_HPP

#include "holdfast/cli/load_plan.hpp"
#include "holdfast/cli/load_report.hpp"

#include <string>

namespace holdfast::cli {

/// A table for people.
std::string to_table(const load_plan& plan, const load_report& report);

/// One line of JSON: mode, connections, seconds, answers_per_second; for pairs and hot pairs_per_second, for mixed
/// rounds_per_second; refused, errors (total) and errors_by_kind, latencies_ms by kind (count, p50, p99, p999, max),
/// idle_connections; rate, which is null in a closed loop, and in an open one started and never_started. For wait also
/// waiting (the wait_kind), resources, handovers_per_second, grants, handovers, expiries, time_ups, standing (most,
/// at_end), early, violations.
std::string to_json(const load_plan& plan, const load_report& report);

}  // namespace holdfast::cli

#endif
