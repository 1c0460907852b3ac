// `rival_load`: puts on Redis or etcd the load that `holdfast bench` puts on Holdfast, and reports it in the same
// words. Built by its name only (cmake --build ... --target rival_load), never installed.
#include "holdfast/app/arguments.hpp"
#include "holdfast/app/descriptor_limit.hpp"
#include "holdfast/app/option_set.hpp"
#include "holdfast/app/usage_error.hpp"
#include "holdfast/cli/load_options.hpp"
#include "holdfast/cli/load_report_text.hpp"

#include "rival_run.hpp"

#include <CLI/CLI.hpp>

#include <array>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::rivals {
namespace {

constexpr int no_server_reachable = 69;  // EX_UNAVAILABLE of sysexits.h
constexpr std::array kinds{cli::load_kind::pairs, cli::load_kind::hot, cli::load_kind::wait};

struct where {
    std::string host = "127.0.0.1";
    std::int64_t port = 6379;
    std::string url = "http://127.0.0.1:2379";
};

client::server_url redis_server(const where& where) {
    return {where.host, static_cast<std::uint16_t>(where.port), where.host + ":" + std::to_string(where.port)};
}

client::server_url etcd_server(const where& where) {
    const auto server = client::server_url::parse(where.url);
    if (!server) throw app::usage_error("--url: \"" + app::printable(where.url) + "\" is not http://HOST[:PORT]");
    return *server;
}

int load(std::string_view rival, int argc, char** argv) {
    const bool is_redis = rival == "redis";
    CLI::App command("Acquire a lock and release it, over and over, on N connections.",
                     "rival_load " + std::string(rival));
    app::option_set options(command, app::option_set::environment::none);
    cli::load_plan plan;
    where where;
    bool is_json_wanted = false;
    if (is_redis) {
        options.add_text({"host", "Load", "Where Redis is"}, "HOST", where.host);
        cli::add_number(options, {"port", "Load", "Its port"}, 1, 65'535, where.port);
    } else {
        options.add_text({"url", "Load", "Where etcd is"}, "URL", where.url);
    }
    std::vector<std::string_view> modes{"pairs", "hot"};
    if (!is_redis) modes.push_back("wait");  // its lock request is answered when it is granted
    options.add_choice({"mode", "Load", "Locks of random names, or one that all connections want, or wait for"}, modes,
                       0, [&plan](std::size_t n) { plan.kind = kinds.at(n); });
    cli::add_load_options(options, plan);
    options.add_text({"resource", "Locks", "The one name of --mode hot and wait"}, "NAME", plan.hot_resource);
    command.add_flag("--json", is_json_wanted, "Print one line of JSON instead of the table");
    if (!app::parse_arguments(command, argc, argv)) return 0;
    options.read();
    if (plan.kind == cli::load_kind::wait) plan.resources = 1;
    plan.servers = {is_redis ? redis_server(where) : etcd_server(where)};

    app::raise_descriptor_limit();
    const auto report = run_rival(plan, is_redis ? &make_redis_client : &make_etcd_client);
    if (!report) {
        std::cerr << "rival_load: nothing answers at " << app::printable(plan.servers.front().authority) << '\n';
        return no_server_reachable;
    }
    std::cout << (is_json_wanted ? cli::to_json(plan, *report) : cli::to_table(plan, *report));
    return report->latencies.empty() && !report->errors.empty() ? 1 : 0;
}

int run(int argc, char** argv) {
    const std::string_view rival = argc > 1 ? argv[1] : "";
    if (rival != "redis" && rival != "etcd") {
        std::cerr << "usage: rival_load redis|etcd [OPTIONS]; each explains its own with --help\n";
        return app::usage_error::exit_code;
    }
    try {
        return load(rival, argc - 1, argv + 1);
    } catch (const app::usage_error& error) {
        std::cerr << "rival_load: " << error.what() << '\n';
        return app::usage_error::exit_code;
    } catch (const std::exception& error) {
        std::cerr << "rival_load: " << error.what() << '\n';
        return 1;
    }
}

}  // namespace
}  // namespace holdfast::rivals

int main(int argc, char** argv) {
    return holdfast::rivals::run(argc, argv);
}
