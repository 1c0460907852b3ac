#ifndef HOLDFAST_CLI_LOAD_RECORDER_HPP
#define HOLDFAST_CLI_LOAD_RECORDER_HPP

#include "holdfast/cli/grant_history.hpp"
#include "holdfast/cli/load_report.hpp"

#include <string>
#include <string_view>

namespace holdfast::cli {

/// Fills a report. Two questions about the measured time are kept apart: a latency counts when its round was *due*
/// within it, however late the answer came, so that a stall at the end is seen whole; the throughput counts what was
/// *done* within it. Not thread-safe.
class load_recorder {
public:
    using clock = std::chrono::steady_clock;

    /// Before it nothing is counted but errors.
    void measure(clock::time_point from, clock::time_point until);
    /// Ends the measured time at `moment`, if that is before its end.
    void cut_off(clock::time_point moment);

    clock::time_point from() const noexcept { return from_; }
    clock::time_point until() const noexcept { return until_; }
    bool is_measured(clock::time_point moment) const noexcept { return moment >= from_ && moment < until_; }

    /// An answer as expected, to a request of that kind (a literal) that was due at `sent`, in the round due at
    /// `round`.
    void answered(std::string_view kind, clock::time_point round, clock::time_point sent);
    /// An acquire found the resource held; says nothing of its latency.
    void refused();
    /// A whole round of several requests, which is called `kind` (a literal).
    void finished(std::string_view kind, clock::time_point round);
    /// A grant to an owner that asked for it, waiting, and what it said about the one before it.
    void granted(const seen_grant& grant, const judged_grant& judged);
    /// A waiter's time was up.
    void time_up();
    /// Always false, for callers that pass on that they failed.
    bool failed(std::string label);

    load_report& report() noexcept { return report_; }

private:
    void lasted(std::string_view kind, clock::time_point began, clock::duration length);

    clock::time_point from_ = clock::time_point::max();
    clock::time_point until_ = clock::time_point::max();
    load_report report_;
};

}  // namespace holdfast::cli

#endif
