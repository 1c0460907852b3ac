// `GET /metrics` of a real node: what was done is what is counted.

#include "support/metrics_page.hpp"
#include "support/psql_session.hpp"
#include "support/shared_nodes.hpp"
#include "support/wait_until.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <thread>

namespace {

using namespace holdfast::tests;
using namespace std::chrono_literals;

metrics_page page_of(const node& server) {
    const reply page = lock_client(server.port()).get("/metrics");
    BOOST_REQUIRE_MESSAGE(page.status == 200, page.text());
    return metrics_page(page.answer.body);
}

double answers(const metrics_page& page, const std::string& route, const std::string& status) {
    return page.value("holdfast_http_requests_total{route=\"" + route + "\",status=\"" + status + "\"}");
}

/// The commands that went to the database or were answered from another's outcome.
double commands(const metrics_page& page, const std::string& kind) {
    return page.sum("holdfast_batch_rows_sum", {"kind=\"" + kind + "\"", "lane=\"fast\""});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(metrics)

BOOST_AUTO_TEST_CASE(numbers_add_up) {
    postgres_cluster& cluster = postgres_cluster::shared();
    const node server(cluster.url(cluster.create_database()));
    constexpr int users = 8;
    constexpr int rounds = 25;
    std::array<int, users> failures{};
    {
        std::vector<std::jthread> threads;
        for (int user = 0; user < users; ++user)
            threads.emplace_back([&, user] {
                lock_client client(server.port());
                for (int round = 0; round < rounds; ++round) {
                    const std::string name = "lock-" + std::to_string(user) + "-" + std::to_string(round);
                    const std::array replies{client.acquire(name, "w", 60), client.renew(name, "w", 60),
                                             client.look(name), client.release(name, "w"), client.look(name)};
                    const std::array expected{200, 200, 200, 204, 404};
                    for (std::size_t i = 0; i < replies.size(); ++i)
                        if (replies[i].status != expected[i]) ++failures[static_cast<std::size_t>(user)];
                }
            });
    }
    for (const int failed : failures)
        BOOST_TEST(failed == 0);

    constexpr int each = users * rounds;
    const metrics_page page = page_of(server);
    BOOST_TEST(answers(page, "acquire", "200") == each);
    BOOST_TEST(answers(page, "renew", "200") == each);
    BOOST_TEST(answers(page, "look", "200") == each);
    BOOST_TEST(answers(page, "look", "404") == each);
    BOOST_TEST(answers(page, "release", "204") == each);
    BOOST_TEST(commands(page, "acquire") == each);
    BOOST_TEST(commands(page, "renew") == each);
    BOOST_TEST(commands(page, "release") == each);
    BOOST_TEST(commands(page, "look") == 2 * each);
    BOOST_TEST(page.sum("holdfast_batch_rows_count") <= 5 * each);
    BOOST_TEST(page.sum("holdfast_batch_rows_count") == page.sum("holdfast_batch_duration_seconds_count"));
    BOOST_TEST(page.sum("holdfast_database_failures_total") == 0);
    BOOST_TEST(page.value("holdfast_database_reconnects_total") == 0);
    BOOST_TEST(page.value("holdfast_commands_waiting") == 0);
    BOOST_TEST(page.value("holdfast_ready") == 1);
    BOOST_TEST(page.value("process_open_fds") >= page.value("holdfast_http_connections_open"));
}

BOOST_AUTO_TEST_CASE(a_stopped_database_is_seen) {
    postgres_cluster cluster;
    const node server(cluster.url());
    BOOST_TEST(page_of(server).sum("holdfast_database_failures_total") == 0);

    cluster.stop();
    const std::string cannot_connect = R"(holdfast_database_failures_total{class="cannot_connect"})";
    BOOST_TEST(wait_until(5s, [&] { return page_of(server).value(cannot_connect) >= 1; }));
    BOOST_TEST(wait_until(5s, [&] { return page_of(server).value("holdfast_ready") == 0; }));
    BOOST_TEST(page_of(server).value("holdfast_database_reconnects_total") == 0);
    lock_client client(server.port());
    BOOST_TEST(client.look("a").status == 503);
    BOOST_TEST(answers(page_of(server), "look", "503") == 1);

    cluster.start();
    BOOST_TEST(wait_until(10s, [&] { return page_of(server).value("holdfast_ready") == 1; }));
    BOOST_TEST(wait_until(5s, [&] { return page_of(server).value("holdfast_database_reconnects_total") >= 1; }));
    BOOST_TEST(client.look("a").status == 404);
}

BOOST_AUTO_TEST_CASE(a_session_lost_with_its_statement_is_seen) {
    postgres_cluster& cluster = postgres_cluster::shared();
    const std::string database = cluster.create_database();
    const node server(cluster.url(database), {{"LOCK_TIMEOUT_MS", "3000"}});
    lock_client client(server.port());
    BOOST_TEST(client.acquire("a", "w", 60).status == 200);
    const std::string lost = R"(holdfast_database_failures_total{class="connection_lost"})";
    {
        const row_lock stranger(cluster, database, "a");
        std::jthread waiting([&] { lock_client(server.port()).renew("a", "w", 60); });
        BOOST_TEST(wait_until(5s, [&] { return page_of(server).value("holdfast_slow_lane_entered_total") >= 1; }));
        // Terminated while it waits for the row, so again and again until one was met in a statement.
        BOOST_TEST(wait_until(2s, [&] {
            cluster.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + database +
                         "' AND wait_event_type = 'Lock'");
            return page_of(server).value(lost) >= 1;
        }));
    }
    BOOST_TEST(wait_until(5s, [&] { return page_of(server).value("holdfast_database_reconnects_total") >= 1; }));
    BOOST_TEST(page_of(server).sum("holdfast_batch_rows_sum", {"lane=\"slow\""}) >= 1);
}

BOOST_AUTO_TEST_SUITE_END()
