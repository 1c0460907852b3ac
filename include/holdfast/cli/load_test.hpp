#ifndef HOLDFAST_CLI_LOAD_TEST_HPP
#define HOLDFAST_CLI_LOAD_TEST_HPP

#include "holdfast/cli/latency_histogram.hpp"
#include "holdfast/client/server_url.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

enum class load_kind {
    pairs,   ///< Acquire a random resource, then release it under its fencing token.
    look,    ///< Look at random locks that nobody holds.
    health,  ///< GET /healthz.
};

std::string_view to_text(load_kind kind) noexcept;

struct load_plan {
    load_kind kind = load_kind::pairs;
    std::vector<client::server_url> servers;  ///< Connections are dealt out to them in turn.
    std::size_t connections = 64;             ///< Each sends its next request when the last one is answered.
    std::size_t idle_connections = 0;         ///< Opened first, one GET /healthz each, then silent until the end.
    std::chrono::seconds warmup{1};           ///< Under load, but not measured.
    std::chrono::seconds length{10};
    std::int64_t resources = 1'000'000;
    std::int64_t ttl_seconds = 30;
    std::chrono::seconds answer_limit{30};  ///< A request without answer is given up as timed out after this.
};

/// Everything but `errors` is counted within the measured time only; errors over the whole run, so that none is hidden.
struct load_report {
    std::map<std::string_view, latency_histogram> latencies;  ///< acquire, release, pair | look | health
    std::chrono::duration<double> measured{0};                ///< The planned length, or less after a signal.
    std::uint64_t refused = 0;                                ///< Acquires that found the resource held.
    std::map<std::string, std::uint64_t> errors;  ///< `503 overloaded`, `connect: …`, `transport: …` …
    std::size_t idle_connections_opened = 0;
    std::size_t idle_connections_kept = 0;  ///< Still open when the run ended.
};

/// Carries the plan out on the calling thread, in one I/O loop; SIGINT and SIGTERM end it early, with a report. Errors
/// of single requests end nothing: a connection that was lost is opened again after a small pause. Nothing comes back
/// when no server answered at all at the start.
std::optional<load_report> run_load_test(const load_plan& plan);

}  // namespace holdfast::cli

#endif
