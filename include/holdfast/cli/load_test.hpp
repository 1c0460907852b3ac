#ifndef HOLDFAST_CLI_LOAD_TEST_HPP
#define HOLDFAST_CLI_LOAD_TEST_HPP

#include "holdfast/cli/load_plan.hpp"
#include "holdfast/cli/load_report.hpp"

#include <optional>

namespace holdfast::cli {

/// Carries the plan out on the calling thread, in one I/O loop; SIGINT and SIGTERM end it early, with a report. Errors
/// of single requests end nothing: a connection that was lost is opened again after a small pause. A round that has
/// begun when the time is up is finished; of waiters, waiting_load.hpp says what is. Nothing comes back when no server
/// answered at all at the start.
std::optional<load_report> run_load_test(const load_plan& plan);

}  // namespace holdfast::cli

#endif
