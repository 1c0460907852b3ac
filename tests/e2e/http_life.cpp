// The life of a node and of its connections: limits, logs, signals, settings.

#include "support/free_port.hpp"
#include "support/psql_session.hpp"
#include "support/shared_nodes.hpp"
#include "support/wait_until.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>

namespace {

using namespace holdfast::tests;
using holdfast::test::http_answer;
using holdfast::test::http_client;
using holdfast::test::http_client_error;
using namespace std::chrono_literals;
namespace json = boost::json;

struct fixture {
    postgres_cluster& cluster = postgres_cluster::shared();
    std::string database = cluster.create_database();
    std::string url = cluster.url(database);
};

bool serves(const node& server) {
    return lock_client(server.port(), 2s).get("/healthz").status == 200;
}

http_client connection_to(const node& server, std::chrono::milliseconds patience = 5s) {
    return http_client::connect("127.0.0.1", server.port(), patience);
}

/// Processor time that the process has used so far.
std::chrono::milliseconds processor_time(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    std::istringstream fields(text.substr(text.rfind(')') + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i)
        fields >> skipped;
    long user_ticks = 0;
    long system_ticks = 0;
    fields >> user_ticks >> system_ticks;
    return std::chrono::milliseconds((user_ticks + system_ticks) * 1000 / sysconf(_SC_CLK_TCK));
}

/// The log lines about the request with this id.
std::vector<json::object> lines_about(const node& server, const std::string& request_id) {
    std::vector<json::object> found;
    for (const json::object& line : server.events("request"))
        if (line.at("request_id").as_string() == request_id) found.push_back(line);
    return found;
}

/// How a start with these settings ends, and what it says.
struct start_result {
    std::optional<int> exit_code;
    std::string output;
};

start_result start_with(const std::map<std::string, std::string>& environment,
                        const std::vector<std::string>& arguments = {}) {
    temporary_directory directory;
    std::vector<std::string> argv{HOLDFAST_BINARY, "serve"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    child_process process(argv, {.environment = environment, .output = directory.path() / "output", .user = ""});
    start_result result;
    result.exit_code = process.wait_for(20s);
    result.output = process.output();
    return result;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(http_life, fixture)

BOOST_AUTO_TEST_CASE(the_accept_loop_survives_a_lack_of_descriptors) {
    node server(url, {{"CONNECTIONS_MAX", "1000"}}, node::wait_for::ready, {"prlimit", "--nofile=64:64"});
    std::vector<http_client> connections;
    for (int i = 0; i < 100; ++i)
        connections.push_back(connection_to(server));
    BOOST_TEST(server.wait_for_event("accept_failed", 5s));

    // It does not spin either.
    const auto before = processor_time(server.pid());
    std::this_thread::sleep_for(1s);
    BOOST_TEST((processor_time(server.pid()) - before < 500ms));
    // Those that got in are served.
    BOOST_TEST(connections.front().request("GET", "/healthz").status == 200);

    connections.clear();
    BOOST_TEST(wait_until(5s, [&] { return serves(server); }));
    BOOST_TEST(lock_client(server.port()).acquire(fresh_name("after"), "w", 60).status == 200);
}

BOOST_AUTO_TEST_CASE(one_connection_too_many_is_told_so) {
    node server(url, {{"CONNECTIONS_MAX", "10"}});
    BOOST_TEST(wait_until(5s, [&] { return serves(server); }));
    std::vector<http_client> connections;
    // One by one, each proven to be in; the client that waited for readiness may take a moment to be counted out.
    BOOST_TEST(wait_until(5s, [&] {
        http_client next = connection_to(server);
        if (next.request("GET", "/healthz").status == 200) connections.push_back(std::move(next));
        return connections.size() == 10;
    }));

    http_client refused = connection_to(server);
    refused.send(http_client::format("GET", "/healthz"));
    const http_answer answer = refused.read();
    BOOST_TEST(answer.status == 503);
    BOOST_TEST(answer.body.find("/problems/overloaded") != std::string::npos, answer.body);
    BOOST_TEST(answer.header("Retry-After") == "1");
    BOOST_TEST(refused.closed_within(5s));

    connections.pop_back();
    BOOST_TEST(wait_until(5s, [&] { return serves(server); }));
    for (http_client& connection : connections)
        BOOST_TEST(connection.request("GET", "/healthz").status == 200);
}

BOOST_AUTO_TEST_CASE(five_hundred_idle_clients_are_cheap_and_harm_nobody) {
    node server(url);
    BOOST_REQUIRE(serves(server));
    const std::size_t before = server.resident_bytes();
    std::vector<http_client> idle;
    for (int i = 0; i < 500; ++i) {
        idle.push_back(connection_to(server));
        BOOST_TEST_REQUIRE(idle.back().request("GET", "/locks/none").status == 404);
    }
    const std::size_t each = (server.resident_bytes() - before) / idle.size();
    BOOST_TEST_MESSAGE(each << " bytes a connection");
    BOOST_TEST(each <= std::size_t{16} << 10);

    const reply grant = lock_client(server.port()).acquire(fresh_name("beside"), "w", 60);
    BOOST_TEST(grant.status == 200, grant.text());
    BOOST_TEST(grant.duration() < 2s);
    for (http_client& connection : idle)
        BOOST_TEST_REQUIRE(connection.request("GET", "/healthz").status == 200);
}

BOOST_AUTO_TEST_CASE(idle_connections_are_closed_in_time) {
    node server(url, {{"IDLE_TIMEOUT_MS", "600"}});
    http_client kept = connection_to(server);
    http_client silent = connection_to(server);
    for (int i = 0; i < 5; ++i) {
        BOOST_TEST(kept.request("GET", "/healthz").status == 200);
        std::this_thread::sleep_for(200ms);
    }
    BOOST_TEST(silent.closed_within(5s));
    BOOST_TEST(kept.closed_within(5s));
}

BOOST_AUTO_TEST_CASE(resets_and_closed_readers_harm_nobody) {
    node server(url);
    in_parallel(4, [&](std::size_t) {
        for (int i = 0; i < 60; ++i) {
            http_client client = connection_to(server);
            std::string many;
            for (int j = 0; j < i % 20; ++j)
                many += http_client::format("GET", "/openapi.json");
            client.send(many + "POST /locks/x HTTP/1.1\r\nHost: x\r\nContent-Le");
            if (i % 2) {
                client.reset();
            } else {
                client.close();  // with answers unread: the node writes into a closed connection
            }
        }
    });
    BOOST_TEST(server.running());
    BOOST_TEST(serves(server));
    BOOST_TEST(lock_client(server.port()).acquire(fresh_name("after"), "w", 60).status == 200);
}

BOOST_AUTO_TEST_CASE(sigpipe_and_sighup_do_not_end_a_node) {
    node server(url);
    for (int i = 0; i < 3; ++i) {
        server.signal(SIGPIPE);
        server.signal(SIGHUP);
        std::this_thread::sleep_for(50ms);
        BOOST_TEST(serves(server));
    }
    BOOST_TEST(lock_client(server.port()).acquire(fresh_name("after"), "w", 60).status == 200);
}

BOOST_AUTO_TEST_CASE(sigint_drains_as_sigterm) {
    node server(url, {{"DRAIN_DELAY_MS", "0"}});
    server.signal(SIGINT);
    BOOST_TEST((server.wait_for_exit(10s) == 0));
}

BOOST_AUTO_TEST_CASE(request_ids_are_taken_over_or_made) {
    lock_client client(shared_nodes::instance().first.port());
    BOOST_TEST(client.request("GET", "/healthz", "", {{"X-Request-Id", "mine-42"}}).answer.header("X-Request-Id") ==
               "mine-42");
    const std::string first = client.get("/healthz").answer.header("X-Request-Id");
    const std::string second = client.get("/nowhere").answer.header("X-Request-Id");
    BOOST_TEST(!first.empty());
    BOOST_TEST(!second.empty());
    BOOST_TEST(first != second);
    // What could spoil a log or a header is not taken over.
    for (const std::string& bad : {std::string(5000, 'x'), std::string("a b\"c")}) {
        const reply answer = client.request("GET", "/healthz", "", {{"X-Request-Id", bad}});
        BOOST_TEST(answer.status == 200);
        BOOST_TEST(answer.answer.header("X-Request-Id") != bad);
        BOOST_TEST(!answer.answer.header("X-Request-Id").empty());
    }
}

BOOST_AUTO_TEST_CASE(failed_and_slow_requests_are_logged_once) {
    node server(url, {{"SLOW_REQUEST_MS", "300"}, {"LOCK_TIMEOUT_MS", "500"}});
    lock_client client(server.port());
    const std::string resource = fresh_name("logged");
    const std::string acquire = R"({"owner":"w","ttl_seconds":60})";
    const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    BOOST_REQUIRE(client.request("POST", "/locks/" + resource, acquire, {{"X-Request-Id", "quick"}}).acquired());
    {
        const row_lock stranger(cluster, database, resource);
        const reply failed = client.request("POST", "/locks/" + resource + "/renew", acquire,
                                            {{"X-Request-Id", "failed"}, {"traceparent", trace}});
        BOOST_TEST(failed.status == 503, failed.text());
    }
    {
        auto stranger = std::make_unique<row_lock>(cluster, database, resource);
        std::jthread asking([&] {
            lock_client(server.port()).request("POST", "/locks/" + resource, acquire, {{"X-Request-Id", "waited"}});
        });
        std::this_thread::sleep_for(400ms);
        stranger.reset();
    }

    BOOST_TEST(wait_until(5s, [&] { return !lines_about(server, "waited").empty(); }));
    const auto failed = lines_about(server, "failed");
    BOOST_TEST_REQUIRE(failed.size() == 1u, server.log());
    BOOST_TEST(failed.front().at("status").to_number<int>() == 503);
    BOOST_TEST(json::serialize(failed.front()).find(trace) != std::string::npos);
    BOOST_TEST(json::serialize(failed.front()).find(resource) != std::string::npos);
    BOOST_TEST(lines_about(server, "waited").size() == 1u);
    BOOST_TEST(lines_about(server, "quick").empty());
}

BOOST_AUTO_TEST_CASE(every_log_line_is_a_json_object) {
    node server(url, {{"SLOW_REQUEST_MS", "0"}, {"LOG_LEVEL", "debug"}, {"DRAIN_DELAY_MS", "0"}});
    lock_client client(server.port());
    for (const std::string& odd :
         {std::string("a\"b\\c"), std::string("\u2028\u00e9"), std::string("x\ty"), std::string("\xff\xfe")}) {
        client.request("POST", "/locks/" + path_segment(odd), R"({"owner":"w","ttl_seconds":60})",
                       {{"X-Request-Id", "id"}, {"traceparent", odd}});
        client.get("/" + path_segment(odd) + "?" + path_segment(odd));
    }
    auto raw = connection_to(server);
    raw.send("GET /\x80\xff\"\\ HTTP/1.1\r\nHost: x\r\ntraceparent: \x80\xff\"\r\n\r\n");
    raw.read();
    server.signal(SIGTERM);
    BOOST_TEST((server.wait_for_exit(10s) == 0));

    const auto lines = server.log_lines();
    BOOST_TEST(lines.size() > 10u);
    for (const std::string& line : lines) {
        boost::system::error_code fault;
        const json::value value = json::parse(line, fault);
        BOOST_TEST_REQUIRE(!fault, line);
        BOOST_TEST_REQUIRE(value.is_object(), line);
        for (const char* member : {"time", "level", "event"})
            BOOST_TEST_REQUIRE(value.as_object().contains(member), line);
        BOOST_TEST_REQUIRE(parse_time_us(std::string(value.at("time").as_string())).has_value(), line);
    }
}

BOOST_AUTO_TEST_CASE(a_log_that_nobody_reads_holds_up_nobody) {
    temporary_directory directory;
    const auto pipe = directory.path() / "log";
    BOOST_TEST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    const std::uint16_t port = free_port();
    const child_process server({HOLDFAST_BINARY, "serve"}, {.environment = {{"HOLDFAST_DATABASE_URL", url},
                                                                            {"HOLDFAST_PORT", std::to_string(port)},
                                                                            {"HOLDFAST_LOG_LEVEL", "debug"}},
                                                            .output = pipe,
                                                            .user = ""});
    BOOST_TEST(wait_until(20s, [&] { return lock_client(port).get("/readyz").status == 200; }));
    lock_client client(port);
    std::chrono::milliseconds slowest{0};
    // Far more than a pipe holds.
    for (int i = 0; i < 2000; ++i) {
        const reply answer = client.get("/nowhere/" + std::string(200, 'n'));
        BOOST_TEST_REQUIRE(answer.status == 404, answer.text());
        slowest = std::max(slowest, answer.duration());
    }
    BOOST_TEST(slowest < 2s);
    BOOST_TEST(client.acquire(fresh_name("unlogged"), "w", 60).status == 200);
    ::close(reader);
}

BOOST_AUTO_TEST_CASE(bad_settings_end_the_start_with_64) {
    struct bad_start {
        std::map<std::string, std::string> environment;
        std::vector<std::string> arguments;
        std::string told;
    };
    const std::map<std::string, std::string> good{{"HOLDFAST_DATABASE_URL", url}, {"HOLDFAST_PORT", "0"}};
    const std::vector<bad_start> starts{
        {{}, {"--colour=red"}, "colour"},
        {{}, {"--port=eighty"}, "port"},
        {{}, {"--port=65536"}, "port"},
        {{}, {"--port=-1"}, "port"},
        {{}, {"--listen-address=0.0.0.0"}, "listen-address"},
        {{}, {"--listen-address=localhost"}, "listen-address"},
        {{}, {"--database-connections=0"}, "database-connections"},
        {{}, {"--database-schema=Robert'); DROP"}, "database-schema"},
        {{}, {"--request-deadline-ms=100"}, "request-deadline-ms"},
        {{}, {"--lock-timeout-ms=4000"}, "lock-timeout-ms"},
        {{}, {"--sweep-after-seconds=39"}, "sweep-after-seconds"},
        {{}, {"--log-level=loud"}, "log-level"},
        {{}, {"--prepared-statements=perhaps"}, "prepared-statements"},
        {{}, {"surplus"}, "argument"},
        {{{"HOLDFAST_PORT", "x"}}, {}, "HOLDFAST_PORT"},
        {{{"HOLDFAST_COLOUR", "red"}}, {}, "HOLDFAST_COLOUR"},
        {{{"HOLDFAST_DATABASE_URL", ""}}, {}, "database-url"},
        {{{"HOLDFAST_DATABASE_URL", "no url at all"}}, {}, "database-url"},
    };
    for (const bad_start& each : starts) {
        std::map<std::string, std::string> environment = good;
        for (const auto& [name, value] : each.environment)
            environment[name] = value;
        const start_result result = start_with(environment, each.arguments);
        BOOST_TEST((result.exit_code == 64), each.told << ": " << result.output);
        BOOST_TEST(result.output.find(each.told) != std::string::npos, each.told << ": " << result.output);
    }
}

BOOST_AUTO_TEST_CASE(a_port_that_is_taken_ends_the_start_with_1) {
    node server(url);
    const start_result result =
        start_with({{"HOLDFAST_DATABASE_URL", url}, {"HOLDFAST_PORT", std::to_string(server.port())}});
    BOOST_TEST((result.exit_code == 1), result.output);
    BOOST_TEST(result.output.find("cannot_listen") != std::string::npos, result.output);
}

BOOST_AUTO_TEST_CASE(settings_are_logged_without_secrets) {
    const std::string secret = "s3cret-pass";
    const std::vector<std::string> urls{
        "postgresql://holdfast:" + secret + "@127.0.0.1:" + std::to_string(cluster.port()) + "/" + database,
        "host=127.0.0.1 port=" + std::to_string(cluster.port()) + " user=holdfast dbname=" + database +
            " password=" + secret};
    for (const std::string& with_password : urls) {
        node server(with_password, {{"DRAIN_DELAY_MS", "0"}, {"QUEUE_MAX", "77"}, {"LOG_LEVEL", "debug"}});
        lock_client(server.port()).acquire(fresh_name("masked"), "w", 60);
        const auto settings = server.events("settings");
        BOOST_TEST_REQUIRE(settings.size() == 1u);
        BOOST_TEST(settings.front().at("queue_max").to_number<int>() == 77);
        const std::string shown(settings.front().at("database_url").as_string());
        BOOST_TEST(shown.find(database) != std::string::npos, shown);
        server.signal(SIGTERM);
        BOOST_TEST(server.wait_for_exit(10s).has_value());
        BOOST_TEST(server.log().find(secret) == std::string::npos);
    }
    // Nor does a start that fails give it away.
    const start_result refused =
        start_with({{"HOLDFAST_DATABASE_URL", "postgresql://u:" + secret + "@[broken"}, {"HOLDFAST_PORT", "0"}});
    BOOST_TEST((refused.exit_code == 64), refused.output);
    BOOST_TEST(refused.output.find(secret) == std::string::npos, refused.output);
}

BOOST_AUTO_TEST_CASE(flags_win_over_variables_and_help_is_complete) {
    temporary_directory directory;
    child_process help({HOLDFAST_BINARY, "serve", "--help"},
                       {.environment = {}, .output = directory.path() / "help", .user = ""});
    BOOST_TEST((help.wait_for(20s) == 0));
    for (const std::string flag : {"listen-address",           "port",
                                   "allow-anonymous",          "database-url",
                                   "database-schema",          "database-connections",
                                   "prepared-statements",      "migrate-on-start",
                                   "request-deadline-ms",      "statement-timeout-ms",
                                   "lock-timeout-ms",          "connect-timeout-seconds",
                                   "reconnect-backoff-max-ms", "queue-max",
                                   "batch-rows-max",           "sweep-after-seconds",
                                   "sweep-interval-seconds",   "drain-delay-ms",
                                   "drain-limit-ms",           "max-ttl-seconds",
                                   "header-deadline-ms",       "body-deadline-ms",
                                   "idle-timeout-ms",          "connections-max",
                                   "slow-request-ms",          "log-level"})
        BOOST_TEST(help.output().find("--" + flag) != std::string::npos, flag);
    const start_result result = start_with({{"HOLDFAST_DATABASE_URL", url}, {"HOLDFAST_PORT", "x"}}, {"--port=70000"});
    BOOST_TEST((result.exit_code == 64), result.output);
    BOOST_TEST(result.output.find("70000") != std::string::npos, result.output);
}

BOOST_AUTO_TEST_CASE(the_maximal_ttl_is_a_setting) {
    node server(url, {{"MAX_TTL_SECONDS", "5"}});
    lock_client client(server.port());
    BOOST_TEST(client.acquire(fresh_name("short"), "w", 5).status == 200);
    const std::vector<std::pair<std::string, std::string>> expected{{"ttl_seconds", "out_of_range"}};
    BOOST_TEST((errors_of(client.acquire(fresh_name("short"), "w", 6)) == expected));
}

BOOST_AUTO_TEST_SUITE_END()
