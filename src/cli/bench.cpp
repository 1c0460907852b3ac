#include "holdfast/app/arguments.hpp"
#include "holdfast/app/descriptor_limit.hpp"
#include "holdfast/app/option_set.hpp"
#include "holdfast/app/usage_error.hpp"
#include "holdfast/cli/load_options.hpp"
#include "holdfast/cli/load_report_text.hpp"
#include "holdfast/cli/load_test.hpp"
#include "holdfast/cli/subcommands.hpp"
#include "holdfast/domain/resource_name.hpp"

#include <CLI/CLI.hpp>

#include <array>
#include <cstdlib>
#include <iostream>

namespace holdfast::cli {
namespace {

constexpr int no_server_reachable = 69;  // EX_UNAVAILABLE of sysexits.h
constexpr std::string_view separators = ", ";

constexpr std::array kinds{load_kind::pairs, load_kind::mixed, load_kind::hot, load_kind::look, load_kind::health};

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
                       {"pairs", "mixed", "hot", "look", "health"}, static_cast<std::size_t>(plan.kind),
                       [&plan](std::size_t n) { plan.kind = kinds.at(n); });
    add_load_options(options, plan);
    add_number(options,
               {"rate", "Load", "Start so many a second, whatever became of those before; 0: each after the last"}, 0,
               1'000'000, plan.rounds_per_second);
    add_number(options, {"idle-connections", "Load", "Connections beside these that stay silent, to measure memory"}, 0,
               1'000'000, plan.idle_connections);
    options.add_text({"resource", "Locks", "The one name of --mode hot"}, "NAME", plan.hot_resource);
    add_number(options, {"ttl-seconds", "Locks", "Length of the leases"}, 1, 315'360'000, plan.ttl_seconds);
}

void refuse_contradictions(const load_plan& plan) {
    if (plan.rounds_per_second > 0 && (plan.kind == load_kind::hot || plan.kind == load_kind::health))
        throw app::usage_error("--rate goes with --mode pairs, mixed or look");
    if (!domain::resource_name::parse(plan.hot_resource))
        throw app::usage_error("--resource: \"" + app::printable(plan.hot_resource) + "\" is not the name of a lock");
}

}  // namespace

int bench(int argc, char** argv) {
    CLI::App command(
        "Put load on a server: N keep-alive connections, each sending its next request when the last is answered, or "
        "with --rate at fixed times.",
        "holdfast bench");
    load_plan plan;
    std::string urls = default_urls();
    bool is_json_wanted = false;
    app::option_set options(command, app::option_set::environment::none);
    options.add_text({"url", "Load", "Servers, separated by commas; HOLDFAST_URL is the default where set"}, "URLS",
                     urls);
    add_plan(options, plan);
    command.add_flag("--json", is_json_wanted, "Print one line of JSON instead of the table");
    if (!app::parse_arguments(command, argc, argv)) return 0;
    options.read();
    plan.servers = parse_urls(urls);
    refuse_contradictions(plan);

    app::raise_descriptor_limit();
    const std::optional<load_report> report = run_load_test(plan);
    if (!report) {
        std::cerr << "holdfast bench: no server answers at " << app::printable(urls) << '\n';
        return no_server_reachable;
    }
    std::cout << (is_json_wanted ? to_json(plan, *report) : to_table(plan, *report));
    const bool all_failed = report->latencies.empty() && !report->errors.empty();
    return all_failed ? 1 : 0;
}

}  // namespace holdfast::cli
