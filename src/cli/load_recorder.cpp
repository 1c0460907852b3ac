#include "holdfast/cli/load_recorder.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::cli {
namespace {

constexpr std::size_t error_labels_max = 64;

}  // namespace

void load_recorder::measure(clock::time_point from, clock::time_point until) {
    from_ = from;
    until_ = until;
}

void load_recorder::cut_off(clock::time_point moment) {
    until_ = std::min(until_, moment);
}

void load_recorder::answered(std::string_view kind, clock::time_point round, clock::time_point sent) {
    const clock::time_point now = clock::now();
    if (is_measured(now)) ++report_.answers;
    if (is_measured(round)) report_.latencies[kind].record(now - sent);
}

void load_recorder::lasted(std::string_view kind, clock::time_point began, clock::duration length) {
    if (is_measured(began)) report_.latencies[kind].record(length);
}

void load_recorder::refused() {
    if (is_measured(clock::now())) ++report_.refused;
}

void load_recorder::finished(std::string_view kind, clock::time_point round) {
    const clock::time_point now = clock::now();
    if (is_measured(now)) ++report_.rounds;
    if (is_measured(round)) report_.latencies[kind].record(now - round);
}

void load_recorder::granted(const seen_grant& grant, const judged_grant& judged) {
    waiting_figures& figures = report_.waiting;
    if (judged.is_early) ++figures.early;
    if (!judged.violation.empty()) {
        ++figures.violations;
        failed("violation: " + std::string(judged.violation));
    }
    if (judged.handover) {
        const clock::time_point sent = grant.received_at - *judged.handover;
        lasted("handover", sent, *judged.handover);
        if (judged.is_across_servers) lasted("handover_across", sent, *judged.handover);
    }
    if (judged.lateness) lasted("lateness", grant.received_at - *judged.lateness, *judged.lateness);
    if (judged.stamped_lateness)
        lasted("stamped_lateness", grant.received_at - *judged.lateness, *judged.stamped_lateness);
    if (!is_measured(grant.received_at)) return;
    ++report_.answers;
    // By its end: those that have asked in the measured time stand in line beyond it, and are dropped.
    report_.latencies["wait"].record(grant.received_at - grant.asked_at);
    ++figures.grants;
    if (judged.handover) ++figures.handovers;
    if (judged.lateness) ++figures.expiries;
}

void load_recorder::time_up() {
    if (!is_measured(clock::now())) return;
    ++report_.answers;
    ++report_.waiting.time_ups;
}

bool load_recorder::failed(std::string label) {
    if (report_.errors.size() >= error_labels_max && !report_.errors.contains(label)) label = "other";
    ++report_.errors[std::move(label)];
    return false;
}

}  // namespace holdfast::cli
