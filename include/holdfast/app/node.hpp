#ifndef HOLDFAST_APP_NODE_HPP
#define HOLDFAST_APP_NODE_HPP

#include "holdfast/app/logging.hpp"
#include "holdfast/app/prometheus_metrics.hpp"
#include "holdfast/app/settings.hpp"

namespace holdfast::app {

/// Runs a node on the calling thread until a signal ends it, and returns the process's exit code:
///   0        after SIGTERM or SIGINT: not ready at once, serving on for `drain_delay`, then drained within
///   `drain_limit` 1        the address cannot be bound, or the database refuses this binary (newer schema …); logged
/// Ends the process itself, with 128 + the signal's number, at a second signal, and with 1 when an exception escapes
/// the core, since nothing can be relied on then; what was logged is still written. SIGHUP and SIGPIPE are ignored.
/// Events: `listening` (address, port), `ready` (first time), `not_ready`, `ready_again`, `draining`, `stopped`.
/// `settings` must be complete (complete_node_settings). `build` is shown by the metrics. One node a process.
int run_node(const settings& settings, log_journal& journal, const build_name& build);

}  // namespace holdfast::app

#endif
