#include "holdfast/app/arguments.hpp"
#include "holdfast/app/descriptor_limit.hpp"
#include "holdfast/app/option_set.hpp"
#include "holdfast/app/usage_error.hpp"
#include "holdfast/cli/load_options.hpp"
#include "holdfast/cli/load_report_text.hpp"
#include "holdfast/cli/load_test.hpp"
#include "holdfast/cli/subcommands.hpp"
#include "holdfast/domain/limits.hpp"
#include "holdfast/domain/resource_name.hpp"

#include <CLI/CLI.hpp>

#include <array>
#include <cstdlib>
#include <iostream>
#include <string>

namespace holdfast::cli {
namespace {

constexpr int no_server_reachable = 69;  // EX_UNAVAILABLE of sysexits.h
constexpr std::string_view separators = ", ";
constexpr std::int64_t wait_resources_max = 1'000'000;  // each is kept in memory

constexpr std::array kinds{load_kind::pairs, load_kind::mixed,  load_kind::hot,
                           load_kind::look,  load_kind::health, load_kind::wait};

/// The options of --mode wait that are no part of a plan.
struct wait_options {
    bool is_abandoning = false;
    bool is_parking = false;
};

std::string default_urls() {
    const char* const given = std::getenv("HOLDFAST_URL");
    return given && *given ? given : "http://127.0.0.1:8080";
}

std::vector<client::server_url> parse_urls(std::string_view list) {
    std::vector<client::server_url> servers;
    while (!list.empty()) {
        const std::string_view url = list.substr(0, list.find_first_of(separators));
        list.remove_prefix(std::min(url.size() + 1, list.size()));
        if (url.empty()) continue;
        const auto server = client::server_url::parse(url);
        if (!server) throw app::usage_error("--url: \"" + app::printable(url) + "\" is not http://HOST[:PORT]");
        servers.push_back(*server);
    }
    if (servers.empty()) throw app::usage_error("--url names no server");
    return servers;
}

void add_plan(app::option_set& options, load_plan& plan) {
    options.add_choice({"mode", "Load", "What each connection does over and over"},
                       {"pairs", "mixed", "hot", "look", "health", "wait"}, static_cast<std::size_t>(plan.kind),
                       [&plan](std::size_t n) { plan.kind = kinds.at(n); });
    add_load_options(options, plan);
    add_number(
        options,
        {"rate", "Load",
         "Start so many a second (modes pairs, mixed, look), whatever became of those before; 0: each after the last"},
        0, 1'000'000, plan.rounds_per_second);
    add_number(options, {"idle-connections", "Load", "Connections beside these that stay silent, to measure memory"}, 0,
               1'000'000, plan.idle_connections);
    options.add_text({"resource", "Locks", "The one name of --mode hot"}, "NAME", plan.hot_resource);
    add_number(options, {"ttl-seconds", "Locks", "Length of the leases; with --abandon 1 unless given"}, 1, 315'360'000,
               plan.ttl_seconds);
}

void add_waiting(app::option_set& options, load_plan& plan, wait_options& wait) {
    add_number(options, {"wait-seconds", "Waiting", "How long a request waits; who is refused then asks again"}, 1,
               domain::limits::wait_seconds_max, plan.wait_seconds);
    options.add_whole_number({"hold-ms", "Waiting", "How long an owner holds the lock before it releases it"}, "NUMBER",
                             0, 86'400'000, plan.hold.count(),
                             [&plan](std::int64_t n) { plan.hold = std::chrono::milliseconds(n); });
    options.add_boolean({"abandon", "Waiting",
                         "No owner releases: its lease ends. `lateness` counts from the moment until which the holder "
                         "may trust its lease (when it asked + waited_ms + expires_in_ms), which is never after the "
                         "true end; `stamped_lateness` is by the database's stamps"},
                        wait.is_abandoning);
    options.add_boolean({"park", "Waiting", "The resources stay held, so that all owners wait and nothing happens"},
                        wait.is_parking);
}

void finish_waiting(const CLI::App& command, load_plan& plan, const wait_options& wait) {
    if (plan.kind != load_kind::wait) {
        for (const char* const option : {"--wait-seconds", "--hold-ms", "--abandon", "--park"})
            if (command.count(option) > 0) throw app::usage_error(std::string(option) + " goes with --mode wait");
        return;
    }
    if (wait.is_abandoning && wait.is_parking) throw app::usage_error("--abandon and --park exclude each other");
    if (wait.is_abandoning) plan.waiting = wait_kind::abandon;
    if (wait.is_parking) plan.waiting = wait_kind::park;
    if (plan.waiting != wait_kind::hand_over && plan.hold.count() > 0)
        throw app::usage_error("--hold-ms goes with neither --abandon nor --park");
    if (command.count("--resources") == 0) plan.resources = 1;
    if (plan.resources > wait_resources_max)
        throw app::usage_error("--resources is at most " + std::to_string(wait_resources_max) + " with --mode wait");
    if (command.count("--ttl-seconds") == 0 && wait.is_abandoning) plan.ttl_seconds = 1;
}

void refuse_contradictions(const load_plan& plan) {
    const bool has_rate =
        plan.kind == load_kind::pairs || plan.kind == load_kind::mixed || plan.kind == load_kind::look;
    if (plan.rounds_per_second > 0 && !has_rate) throw app::usage_error("--rate goes with --mode pairs, mixed or look");
    if (plan.idle_connections > 0 && plan.kind == load_kind::wait)
        throw app::usage_error("--idle-connections does not go with --mode wait");
    if (!domain::resource_name::parse(plan.hot_resource))
        throw app::usage_error("--resource: \"" + app::printable(plan.hot_resource) + "\" is not the name of a lock");
}

}  // namespace

int bench(int argc, char** argv) {
    CLI::App command(
        "Put load on a server: N keep-alive connections, each sending its next request when the last is answered, or "
        "with --rate at fixed times. With --mode wait each is an owner that stands in line: owner n at server n mod K "
        "of "
        "K, for resource n / K mod M of M. `handover` counts from when a release was sent until the next owner's grant "
        "was there, if that owner had asked before. What must not be (a token that does not rise, two holders at a "
        "time) is a violation, and the exit code 1.",
        "holdfast bench");
    load_plan plan;
    std::string urls = default_urls();
    bool is_json_wanted = false;
    app::option_set options(command, app::option_set::environment::none);
    options.add_text({"url", "Load", "Servers, separated by commas; HOLDFAST_URL is the default where set"}, "URLS",
                     urls);
    add_plan(options, plan);
    wait_options wait;
    add_waiting(options, plan, wait);
    command.add_flag("--json", is_json_wanted, "Print one line of JSON instead of the table");
    if (!app::parse_arguments(command, argc, argv)) return 0;
    options.read();
    plan.servers = parse_urls(urls);
    finish_waiting(command, plan, wait);
    refuse_contradictions(plan);

    app::raise_descriptor_limit();
    const std::optional<load_report> report = run_load_test(plan);
    if (!report) {
        std::cerr << "holdfast bench: no server answers at " << app::printable(urls) << '\n';
        return no_server_reachable;
    }
    std::cout << (is_json_wanted ? to_json(plan, *report) : to_table(plan, *report));
    const bool all_failed = report->latencies.empty() && !report->errors.empty();
    return all_failed || report->waiting.violations > 0 ? 1 : 0;
}

}  // namespace holdfast::cli
