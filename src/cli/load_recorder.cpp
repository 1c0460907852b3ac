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

void load_recorder::refused() {
    if (is_measured(clock::now())) ++report_.refused;
}

void load_recorder::finished(std::string_view kind, clock::time_point round) {
    const clock::time_point now = clock::now();
    if (is_measured(now)) ++report_.rounds;
    if (is_measured(round)) report_.latencies[kind].record(now - round);
}

bool load_recorder::failed(std::string label) {
    if (report_.errors.size() >= error_labels_max && !report_.errors.contains(label)) label = "other";
    ++report_.errors[std::move(label)];
    return false;
}

}  // namespace holdfast::cli
