#ifndef HOLDFAST_CLI_LOAD_REPORT_HPP
#define HOLDFAST_CLI_LOAD_REPORT_HPP

#include "holdfast/cli/latency_histogram.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// What a load of waiters shows beside latencies. What is counted is counted in the measured time, but for what must
/// not be, which is counted over the whole run.
struct waiting_figures {
    std::uint64_t grants = 0;
    std::uint64_t handovers = 0;      ///< Grants to a waiter after another owner's release.
    std::uint64_t expiries = 0;       ///< Grants to a waiter after another owner's lease had ended.
    std::uint64_t time_ups = 0;       ///< Requests that were refused when their time was up.
    std::size_t standing_most = 0;    ///< The most requests that stood in line, or were about to, at a time.
    std::size_t standing_at_end = 0;  ///< When the measured time ended.
    std::uint64_t early = 0;          ///< Grants before an unreleased lease had ended, by the database's stamps.
    std::uint64_t violations = 0;     ///< Those, and whatever else must not be; each is among the errors.
};

/// Errors are counted over the whole run, so that none is hidden; all else as load_recorder says.
struct load_report {
    /// By kind of request: acquire (granted), refuse, renew, look, release, health; and by kind of round where that is
    /// more than one request: pair, round. In an open loop the first request's latency counts from when it was due.
    std::map<std::string_view, latency_histogram> latencies;
    std::chrono::duration<double> measured{0};    ///< The planned length, or less after a signal.
    std::uint64_t answers = 0;                    ///< Answers as expected, of every kind.
    std::uint64_t rounds = 0;                     ///< Whole pairs, or rounds of the mixed load.
    std::uint64_t refused = 0;                    ///< Acquires that found the resource held; they are answers too.
    std::uint64_t started = 0;                    ///< Open loop: rounds that were due in the measured time and began.
    std::uint64_t never_started = 0;              ///< Open loop: those that were due and did not begin.
    std::map<std::string, std::uint64_t> errors;  ///< `503 overloaded`, `connect: …`, `transport: …` …
    waiting_figures waiting;
    std::size_t idle_connections_opened = 0;
    std::size_t idle_connections_kept = 0;  ///< Still open when the run ended.
};

}  // namespace holdfast::cli

#endif
