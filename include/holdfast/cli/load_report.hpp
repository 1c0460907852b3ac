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
    std::size_t idle_connections_opened = 0;
    std::size_t idle_connections_kept = 0;  ///< Still open when the run ended.
};

}  // namespace holdfast::cli

#endif
