#ifndef HOLDFAST_CLI_WAITING_LOAD_HPP
#define HOLDFAST_CLI_WAITING_LOAD_HPP

#include "holdfast/cli/load_plan.hpp"
#include "holdfast/cli/load_report.hpp"

#include <optional>

namespace holdfast::cli {

/// Carries out a plan of load_kind::wait, as run_load_test says. The owners join the lines one after the other, those
/// of wait_kind::abandon over the length of a lease, so that the leases do not end together; the warm-up begins when
/// all have joined. At the end a release whose next grant is still to come is waited for, and then the connections of
/// those who still wait are closed.
std::optional<load_report> run_waiting_load(const load_plan& plan);

}  // namespace holdfast::cli

#endif
