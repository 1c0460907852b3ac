#ifndef HOLDFAST_CLI_LOAD_OPTIONS_HPP
#define HOLDFAST_CLI_LOAD_OPTIONS_HPP

#include "holdfast/app/option_set.hpp"
#include "holdfast/cli/load_plan.hpp"

#include <chrono>
#include <cstdint>
#include <type_traits>

namespace holdfast::cli {

/// Adds a whole number whose default is what `target` holds. `target` must outlive `options`; so below.
template <class Number>
void add_number(app::option_set& options, app::option_name name, std::int64_t min, std::int64_t max, Number& target) {
    options.add_whole_number(name, "NUMBER", min, max, static_cast<std::int64_t>(target),
                             [&target](std::int64_t n) { target = static_cast<Number>(n); });
}

/// A length of time, likewise.
inline void add_seconds(app::option_set& options, app::option_name name, std::int64_t min, std::int64_t max,
                        std::chrono::seconds& target) {
    options.add_whole_number(name, "SECONDS", min, max, target.count(),
                             [&target](std::int64_t n) { target = std::chrono::seconds(n); });
}

/// What every load has, whatever it is put on: connections, seconds, warmup-seconds, answer-limit-seconds, resources.
inline void add_load_options(app::option_set& options, load_plan& plan) {
    add_number(options, {"connections", "Load", "Keep-alive connections, each with one request at a time"}, 0, 100'000,
               plan.connections);
    add_seconds(options, {"seconds", "Load", "Length of the measurement"}, 1, 86'400, plan.length);
    add_seconds(options, {"warmup-seconds", "Load", "Load before the measurement"}, 0, 3'600, plan.warmup);
    add_seconds(options, {"answer-limit-seconds", "Load", "Give a request up after this"}, 1, 3'600, plan.answer_limit);
    add_number(options, {"resources", "Locks", "How many names to choose from; with --mode wait 1 unless given"}, 1,
               1'000'000'000'000, plan.resources);
}

}  // namespace holdfast::cli

#endif
