// Section 7 of the contract: what clients see when things break, and that nodes recover by themselves.

#include "support/free_port.hpp"
#include "support/haproxy.hpp"
#include "support/pgbouncer.hpp"
#include "support/psql_session.hpp"
#include "support/shared_nodes.hpp"
#include "support/tcp_gate.hpp"
#include "support/wait_until.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <iterator>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

namespace {

using namespace holdfast::tests;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

/// Short limits, so that faults are over quickly.
const node::settings short_limits{
    {"REQUEST_DEADLINE_MS", "2000"}, {"STATEMENT_TIMEOUT_MS", "1500"}, {"LOCK_TIMEOUT_MS", "500"}};
constexpr auto deadline = 2000ms;
/// For a busy machine, on top of what the contract says.
constexpr auto allowance = 1500ms;

/// A fresh database.
struct fixture {
    postgres_cluster& cluster;
    std::string database = cluster.create_database();

    explicit fixture(postgres_cluster& on) : cluster(on) {}
    std::unique_ptr<node> start_node(const std::string& url) { return std::make_unique<node>(url, short_limits); }
    std::unique_ptr<node> start_node() { return start_node(cluster.url(database)); }
};

/// For cases that leave the database server alone.
struct on_shared_cluster : fixture {
    on_shared_cluster() : fixture(postgres_cluster::shared()) {}
};

/// For cases that break it.
struct own_cluster_holder {
    postgres_cluster own;
};
struct on_own_cluster : private own_cluster_holder, fixture {
    on_own_cluster() : fixture(own) {}
};

std::string url_at(std::uint16_t port, const std::string& database) {
    return "postgresql://holdfast@127.0.0.1:" + std::to_string(port) + "/" + database;
}

/// While the database cannot be used: 503 in time, never another error; alive, not ready.
void check_refused_in_time(const reply& reply) {
    BOOST_TEST(reply.status == 503, reply.text());
    const std::string problem = reply.problem();
    BOOST_TEST((problem == "unavailable" || problem == "overloaded" || problem == "outcome-unknown"), reply.text());
    BOOST_TEST(outside_the_contract(reply) == "");
    BOOST_TEST(reply.duration() < deadline + allowance);
}

void check_alive_but_not_ready(const node& server) {
    lock_client client(server.port());
    const reply alive = client.get("/healthz");
    BOOST_TEST(alive.status == 200, alive.text());
    BOOST_TEST(alive.duration() < allowance);
    BOOST_TEST(wait_until(deadline + 3s, [&] { return client.get("/readyz").status == 503; }));
    const reply not_ready = client.get("/readyz");
    BOOST_TEST(not_ready.answer.header("Retry-After") != "");
    BOOST_TEST(not_ready.problem() == "unavailable", not_ready.text());
}

void check_all_kinds_refused(const node& server) {
    lock_client client(server.port());
    const std::string resource = fresh_name("refused");
    for (const reply& refused :
         {client.look(resource), client.acquire(resource, "w", 60), client.renew(resource, "w", 60),
          client.release(resource, "w"), client.post_release(resource, "w")})
        check_refused_in_time(refused);
}

/// From now on, a request is served within 2 s.
void check_recovers(const node& server) {
    const auto since = steady::now();
    lock_client client(server.port());
    reply grant;
    const bool recovered = wait_until(10s, [&] {
        grant = client.acquire(fresh_name("recovered"), "w", 60);
        return grant.status == 200 && grant.acquired();
    });
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(steady::now() - since);
    BOOST_TEST_MESSAGE("recovered after " << took.count() << " ms");
    BOOST_TEST(recovered, grant.text());
    BOOST_TEST((took <= 2000ms + 500ms), "recovery took " << took.count() << " ms");
    BOOST_TEST(wait_until(2s, [&] { return client.get("/readyz").status == 200; }));
}

/// Users who acquire and release until told to stop; everything they saw is kept.
class crowd {
public:
    crowd(std::vector<std::uint16_t> ports, std::size_t users) {
        for (std::size_t i = 0; i < users; ++i)
            threads_.emplace_back([this, port = ports[i % ports.size()], i] { live(port, i); });
    }
    ~crowd() { stop(); }

    void stop() {
        over_ = true;
        threads_.clear();
    }
    std::size_t served() const { return served_; }
    const lease_recorder& recorder() const { return recorder_; }
    /// Texts of all replies that were neither success nor refusal, after stop().
    const std::vector<reply>& failures() const { return failures_; }

private:
    void live(std::uint16_t port, std::size_t number) {
        recorded_client client(port, "user-" + std::to_string(number), recorder_);
        // Some resources are shared by all, some are not.
        const std::vector<std::string> resources{"common-1", "common-2", "own-" + std::to_string(number)};
        for (std::size_t round = number; !over_; ++round) {
            const std::string& resource = resources[round % resources.size()];
            const reply grant = noted(client.acquire(resource, 2));
            if (grant.status != 200) std::this_thread::sleep_for(10ms);
            if (grant.status != 200 || !grant.acquired()) continue;
            if (round % 5 == 0) noted(client.renew(resource, 2, grant.token()));
            noted(client.release(resource, grant.token()));
        }
    }

    const reply& noted(const reply& reply) {
        const bool unserved = reply.status == 0 || reply.status >= 500;
        if (!unserved) ++served_;
        if (!unserved) return reply;
        const std::lock_guard guard(mutex_);
        failures_.push_back(reply);
        return reply;
    }

    lease_recorder recorder_;
    std::atomic<bool> over_ = false;
    std::atomic<std::size_t> served_ = 0;
    std::mutex mutex_;
    std::vector<reply> failures_;
    std::vector<std::jthread> threads_;
};

void check_leases(const crowd& users) {
    for (const std::string& violation : users.recorder().violations())
        BOOST_ERROR(violation);
}

/// Leases that are alive in the database although no client was told of them.
std::string living_leases(const postgres_cluster& cluster, const std::string& database) {
    return cluster.psql(
        "SELECT string_agg(resource, ' ') FROM holdfast.distributed_locks WHERE NOT released AND expires_at > "
        "clock_timestamp()",
        database);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(faults, on_shared_cluster)

BOOST_FIXTURE_TEST_CASE(database_stopped_and_started, on_own_cluster) {
    const auto server = start_node();
    const std::string resource = fresh_name("standing");
    const std::int64_t token = lock_client(server->port()).acquire(resource, "w", 600).token();
    crowd users({server->port()}, 6);
    BOOST_TEST(wait_until(5s, [&] { return users.served() > 50; }));

    cluster.stop();
    check_alive_but_not_ready(*server);
    check_all_kinds_refused(*server);
    cluster.start();
    check_recovers(*server);
    users.stop();

    BOOST_TEST(!users.failures().empty());
    for (const reply& failure : users.failures())
        check_refused_in_time(failure);
    check_leases(users);
    BOOST_TEST(lock_client(server->port()).look(resource).token() == token);
    BOOST_TEST(server->running());
}

BOOST_FIXTURE_TEST_CASE(database_restarted_after_a_crash, on_own_cluster) {
    const auto server = start_node();
    const std::string resource = fresh_name("standing");
    const std::int64_t token = lock_client(server->port()).acquire(resource, "w", 600).token();
    crowd users({server->port()}, 6);
    BOOST_TEST(wait_until(5s, [&] { return users.served() > 50; }));

    cluster.crash();
    cluster.start();
    check_recovers(*server);
    users.stop();

    for (const reply& failure : users.failures())
        check_refused_in_time(failure);
    check_leases(users);
    BOOST_TEST(lock_client(server->port()).look(resource).token() == token);
}

BOOST_FIXTURE_TEST_CASE(database_down_at_start, on_own_cluster) {
    cluster.stop();
    node server(cluster.url(database), short_limits, node::wait_for::listening);
    check_alive_but_not_ready(server);
    check_all_kinds_refused(server);
    cluster.start();
    check_recovers(server);
    BOOST_TEST(server.wait_for_event("ready", 5s));
}

BOOST_FIXTURE_TEST_CASE(database_frozen, on_own_cluster) {
    const auto server = start_node();
    BOOST_REQUIRE(lock_client(server->port()).acquire(fresh_name("before"), "w", 1).acquired());

    cluster.freeze();
    // More than there are connections, so that some are sent and some are not.
    std::vector<reply> replies(24);
    in_parallel(replies.size(), [&](std::size_t i) {
        replies[i] = lock_client(server->port()).acquire(fresh_name("nobodys"), "w", 600);
    });
    for (const reply& reply : replies)
        check_refused_in_time(reply);
    check_alive_but_not_ready(*server);
    check_all_kinds_refused(*server);
    std::this_thread::sleep_for(1500ms);  // now everything that was sent is later than its time
    cluster.thaw();
    check_recovers(*server);

    // What the frozen sessions still had to execute has been executed: it could only refuse.
    BOOST_TEST(wait_until(5s, [&] {
        return cluster.psql(
                   "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()") == "0";
    }));
    BOOST_TEST(living_leases(cluster, database).find("nobodys") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(network_stalled_in_each_direction) {
    tcp_gate gate(cluster.port());
    const auto server = start_node(url_at(gate.port(), database));
    for (const auto direction :
         {tcp_gate::direction::to_server, tcp_gate::direction::to_client, tcp_gate::direction::both}) {
        gate.stall(direction);
        std::vector<reply> replies(16);
        in_parallel(replies.size(), [&](std::size_t i) {
            const std::string stem = direction == tcp_gate::direction::to_client ? "perhaps" : "nobodys";
            replies[i] = lock_client(server->port()).acquire(fresh_name(stem), "w", 600);
        });
        for (const reply& reply : replies)
            check_refused_in_time(reply);
        check_alive_but_not_ready(*server);
        check_all_kinds_refused(*server);
        std::this_thread::sleep_for(1500ms);
        gate.pass();  // what was held back arrives now
        check_recovers(*server);
        BOOST_TEST(living_leases(cluster, database).find("nobodys") == std::string::npos);
    }
}

BOOST_AUTO_TEST_CASE(network_reset_dropped_and_refused) {
    tcp_gate gate(cluster.port());
    const auto server = start_node(url_at(gate.port(), database));
    crowd users({server->port()}, 6);
    for (int i = 0; i < 10; ++i) {
        std::this_thread::sleep_for(200ms);
        if (i % 2) {
            gate.reset();
        } else {
            gate.drop();
        }
    }
    gate.refuse();
    check_alive_but_not_ready(*server);
    gate.pass();
    check_recovers(*server);
    users.stop();

    for (const reply& failure : users.failures())
        check_refused_in_time(failure);
    check_leases(users);
}

BOOST_FIXTURE_TEST_CASE(database_read_only, on_own_cluster) {
    const auto server = start_node();
    const std::string resource = fresh_name("standing");
    BOOST_REQUIRE(lock_client(server->port()).acquire(resource, "w", 600).acquired());

    cluster.psql("ALTER SYSTEM SET default_transaction_read_only = on");
    cluster.psql("SELECT pg_reload_conf()");
    check_alive_but_not_ready(*server);
    check_all_kinds_refused(*server);
    const reply looked = lock_client(server->port()).look(resource);  // a standby's answer might be a lie
    BOOST_TEST(looked.status == 503, looked.text());
    BOOST_TEST(looked.problem() == "unavailable", looked.text());
    const reply acquired = lock_client(server->port()).acquire(fresh_name("refused"), "w", 60);
    BOOST_TEST(acquired.problem() == "unavailable", acquired.text());

    cluster.psql("ALTER SYSTEM RESET default_transaction_read_only");
    cluster.psql("SELECT pg_reload_conf()");
    check_recovers(*server);
    BOOST_TEST(lock_client(server->port()).look(resource).status == 200);
}

BOOST_AUTO_TEST_CASE(node_starts_while_no_connection_is_to_be_had) {
    // A slot is free again as soon as its client is gone.
    postgres_cluster small(
        postgres_cluster::settings{{"max_connections", "8"}, {"client_connection_check_interval", "100"}});
    const std::string name = small.create_database();
    std::vector<psql_session> hogs;
    for (int i = 0; i < 10; ++i)
        hogs.emplace_back(small, name, "SELECT pg_sleep(600)");
    BOOST_TEST(wait_until(10s, [&] { return small.log().find("too many clients already") != std::string::npos; }));

    node server(small.url(name), short_limits, node::wait_for::listening);
    check_alive_but_not_ready(server);
    check_all_kinds_refused(server);
    hogs.clear();
    check_recovers(server);
}

BOOST_AUTO_TEST_CASE(database_runs_out_of_connections) {
    cluster.psql("CREATE ROLE application LOGIN");
    cluster.psql("ALTER DATABASE " + database + " OWNER TO application");
    const auto server =
        start_node("postgresql://application@127.0.0.1:" + std::to_string(cluster.port()) + "/" + database);
    crowd users({server->port()}, 4);
    BOOST_TEST(wait_until(5s, [&] { return users.served() > 50; }));

    cluster.psql("ALTER ROLE application CONNECTION LIMIT 0");
    cluster.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'application'");
    check_alive_but_not_ready(*server);
    check_all_kinds_refused(*server);
    cluster.psql("ALTER ROLE application CONNECTION LIMIT -1");
    check_recovers(*server);
    users.stop();

    for (const reply& failure : users.failures())
        check_refused_in_time(failure);
    check_leases(users);
}

BOOST_AUTO_TEST_CASE(one_row_locked_by_a_stranger_under_50_clients) {
    node server(cluster.url(database), {{"LOCK_TIMEOUT_MS", "1000"}});
    const std::string wedged = fresh_name("wedged");
    BOOST_REQUIRE(lock_client(server.port()).acquire(wedged, "w", 600).acquired());
    std::mutex mutex;
    std::chrono::milliseconds slowest{0};
    std::vector<std::string> failures;
    std::atomic<bool> over = false;
    std::vector<reply> refused;
    {
        const row_lock stranger(cluster, database, wedged);
        std::vector<std::jthread> users;
        for (int number = 0; number < 50; ++number)
            users.emplace_back([&] {
                lock_client client(server.port());
                while (!over) {
                    const std::string resource = fresh_name("other");
                    for (const reply& reply : {client.acquire(resource, "w", 60), client.release(resource, "w")}) {
                        const std::lock_guard guard(mutex);
                        slowest = std::max(slowest, reply.duration());
                        if (reply.status != 200 && reply.status != 204) failures.push_back(reply.text());
                    }
                }
            });
        lock_client client(server.port());
        for (int i = 0; i < 2; ++i) {
            refused.push_back(client.acquire(wedged, "w", 60));
            refused.push_back(client.renew(wedged, "w", 60));
            refused.push_back(client.release(wedged, "w"));
        }
        BOOST_TEST(client.look(wedged).status == 200);
        over = true;
    }

    for (const reply& each : refused) {
        BOOST_TEST(each.status == 503, each.text());
        BOOST_TEST(each.problem() == "overloaded", each.text());
        BOOST_TEST(each.duration() < 1000ms + allowance);
    }
    BOOST_TEST(failures.empty(), (failures.empty() ? std::string() : failures.front()));
    BOOST_TEST_MESSAGE("slowest of the others: " << slowest.count() << " ms");
    BOOST_TEST(slowest < 900ms + allowance);
    // Certainly no effect; and as soon as the stranger is gone, all is as before.
    BOOST_TEST(lock_client(server.port()).release(wedged, "w").status == 204);
}

BOOST_AUTO_TEST_CASE(many_ask_for_the_locked_row) {
    node server(cluster.url(database), {{"LOCK_TIMEOUT_MS", "500"}});
    const std::string wedged = fresh_name("wedged");
    BOOST_REQUIRE(lock_client(server.port()).acquire(wedged, "w", 600).acquired());
    const row_lock stranger(cluster, database, wedged);

    std::vector<reply> replies(60);
    in_parallel(replies.size(), [&](std::size_t i) {
        lock_client client(server.port());
        // Those who want something else are served meanwhile.
        replies[i] = i % 2 ? client.release(wedged, "w") : client.acquire(fresh_name("other"), "w", 60);
    });

    for (std::size_t i = 0; i < replies.size(); ++i) {
        BOOST_TEST(replies[i].status == (i % 2 ? 503 : 200), replies[i].text());
        BOOST_TEST(replies[i].duration() < 5s + allowance);
        if (i % 2) BOOST_TEST(replies[i].problem() == "overloaded", replies[i].text());
    }
}

BOOST_AUTO_TEST_CASE(table_locked_by_a_stranger) {
    const auto server = start_node();
    const std::string resource = fresh_name("standing");
    BOOST_REQUIRE(lock_client(server->port()).acquire(resource, "w", 600).acquired());
    {
        const psql_session stranger(cluster, database,
                                    "BEGIN; LOCK TABLE holdfast.distributed_locks; SELECT pg_sleep(5); COMMIT");
        BOOST_TEST(wait_until(5s, [&] {
            return cluster.psql(
                       "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted AND "
                       "relation = 'holdfast.distributed_locks'::regclass",
                       database) == "1";
        }));
        std::vector<reply> replies(20);
        in_parallel(replies.size(), [&](std::size_t i) {
            lock_client client(server->port());
            replies[i] = i % 2 ? client.look(resource) : client.acquire(fresh_name("wanted"), "w", 60);
        });
        for (const reply& reply : replies)
            check_refused_in_time(reply);
        const reply alive = lock_client(server->port()).get("/healthz");
        BOOST_TEST(alive.duration() < allowance);
    }
    BOOST_TEST(wait_until(10s, [&] { return lock_client(server->port()).look(resource).status == 200; }));
    BOOST_TEST(lock_client(server->port()).release(resource, "w").status == 204);
}

BOOST_AUTO_TEST_CASE(two_backends_frozen) {
    const auto server = start_node();
    std::vector<pid_t> backends;
    std::istringstream pids(cluster.psql("SELECT pid FROM pg_stat_activity WHERE datname = '" + database +
                                         "' ORDER BY backend_start LIMIT 2"));
    for (pid_t pid; pids >> pid;)
        backends.push_back(pid);
    BOOST_TEST_REQUIRE(backends.size() == 2u);
    for (const pid_t pid : backends)
        ::kill(pid, SIGSTOP);

    // Some requests meet a frozen session; they fail in time, and the others are served by those that live.
    std::mutex mutex;
    std::vector<std::pair<std::string, reply>> acquired;
    const auto end = steady::now() + deadline + 2s;
    in_parallel(8, [&](std::size_t) {
        lock_client client(server->port());
        while (steady::now() < end) {
            const std::string resource = fresh_name("frozen");
            const reply reply = client.acquire(resource, "w", 600);
            const std::lock_guard guard(mutex);
            acquired.emplace_back(resource, reply);
        }
    });
    for (const pid_t pid : backends)
        ::kill(pid, SIGCONT);
    check_recovers(*server);

    BOOST_TEST(wait_until(5s, [&] {
        return cluster.psql(
                   "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()") == "0";
    }));
    std::istringstream living(
        cluster.psql("SELECT resource FROM holdfast.distributed_locks WHERE expires_at > clock_timestamp()", database));
    const std::set<std::string> alive{std::istream_iterator<std::string>(living), {}};
    std::size_t failed = 0;
    for (const auto& [resource, reply] : acquired) {
        BOOST_TEST_REQUIRE(alive.contains(resource) == (reply.status == 200), resource << ": " << reply.text());
        if (reply.status == 200) continue;
        check_refused_in_time(reply);
        ++failed;
    }
    BOOST_TEST_MESSAGE(failed << " of " << acquired.size() << " failed");
    BOOST_TEST(failed <= 16u);
    BOOST_TEST(acquired.size() > 100u);
}

BOOST_AUTO_TEST_CASE(backends_terminated_under_load) {
    const auto first = start_node();
    const auto second = start_node();
    crowd users({first->port(), second->port()}, 12);
    for (int i = 0; i < 25; ++i) {
        std::this_thread::sleep_for(200ms);
        cluster.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" + database +
                     "' AND pid <> pg_backend_pid()");
    }
    check_recovers(*first);
    check_recovers(*second);
    users.stop();

    BOOST_TEST(users.served() > 100u);
    for (const reply& failure : users.failures())
        check_refused_in_time(failure);
    check_leases(users);
}

BOOST_AUTO_TEST_CASE(node_killed) {
    const auto mortal = start_node();
    const auto other = start_node();
    const std::string resource = fresh_name("standing");
    const std::int64_t token = lock_client(mortal->port()).acquire(resource, "w", 600).token();
    mortal->kill();

    lock_client client(other->port());
    BOOST_TEST(client.look(resource).token() == token);
    BOOST_TEST(!client.acquire(resource, "x", 60).acquired());
    BOOST_TEST(client.renew(resource, "w", 60, token).status == 200);
    BOOST_TEST(client.release(resource, "w", token).status == 204);
}

BOOST_AUTO_TEST_CASE(sigterm_under_load_behind_the_balancer) {
    const auto staying = start_node();
    const auto leaving = start_node();
    const haproxy balancer({staying->port(), leaving->port()});
    BOOST_REQUIRE(balancer.wait_until_ready(10s));
    const std::string resource = fresh_name("standing");
    BOOST_REQUIRE(lock_client(leaving->port()).acquire(resource, "w", 600).acquired());
    std::this_thread::sleep_for(1s);  // until the balancer has seen both
    crowd users({balancer.port()}, 12);
    BOOST_TEST(wait_until(5s, [&] { return users.served() > 100; }));

    leaving->signal(SIGTERM);
    // Not ready from this moment on, and yet serving.
    lock_client direct(leaving->port());
    BOOST_TEST(wait_until(500ms, [&] { return direct.get("/readyz").status == 503; }));
    BOOST_TEST(direct.get("/healthz").status == 200);
    BOOST_TEST(direct.look(resource).status == 200);
    const auto exit_code = leaving->wait_for_exit(20s);
    BOOST_TEST_REQUIRE(exit_code.has_value());
    BOOST_TEST(*exit_code == 0);
    std::this_thread::sleep_for(500ms);
    users.stop();

    for (const reply& failure : users.failures())
        BOOST_ERROR("failed request: " << failure.text());
    BOOST_TEST(users.served() > 200u);
    check_leases(users);
    // Locks are not released by a node that ends.
    BOOST_TEST(lock_client(staying->port()).look(resource).status == 200);
}

BOOST_AUTO_TEST_CASE(sigterm_closes_connections_without_losing_requests) {
    node server(cluster.url(database), {{"DRAIN_DELAY_MS", "300"}});
    auto busy = holdfast::test::http_client::connect("127.0.0.1", server.port());
    auto idle = holdfast::test::http_client::connect("127.0.0.1", server.port());
    BOOST_TEST(busy.request("GET", "/healthz").status == 200);
    BOOST_TEST(idle.request("GET", "/healthz").status == 200);

    server.signal(SIGTERM);
    // A keep-alive client that goes on asking is served until it is told to close.
    std::string told_to_close;
    for (int i = 0; i < 500 && told_to_close.empty(); ++i) {
        const auto answer = busy.request("GET", "/locks/x");
        BOOST_TEST_REQUIRE((answer.status == 404 || answer.status == 503), answer.body);
        if (answer.header("Connection") == "close") told_to_close = "yes";
        std::this_thread::sleep_for(10ms);
    }
    BOOST_TEST(told_to_close == "yes");
    BOOST_TEST(busy.closed_within(5s));
    BOOST_TEST(idle.closed_within(5s));
    BOOST_TEST((server.wait_for_exit(10s) == 0));
    BOOST_TEST(!server.events("stopped").empty());
}

BOOST_AUTO_TEST_CASE(sigterm_waits_for_requests_that_are_under_way) {
    node server(cluster.url(database), {{"DRAIN_DELAY_MS", "0"}, {"LOCK_TIMEOUT_MS", "3000"}});
    const std::string resource = fresh_name("held");
    const std::int64_t token = lock_client(server.port()).acquire(resource, "w", 600).token();
    reply renewed;
    {
        auto stranger = std::make_unique<row_lock>(cluster, database, resource);
        std::jthread renewing([&] { renewed = lock_client(server.port()).renew(resource, "w", 60, token); });
        std::this_thread::sleep_for(300ms);
        server.signal(SIGTERM);
        std::this_thread::sleep_for(700ms);
        BOOST_TEST(server.running());
        stranger.reset();
    }
    BOOST_TEST(renewed.status == 200, renewed.text());
    BOOST_TEST(renewed.answer.header("Connection") == "close");
    BOOST_TEST((server.wait_for_exit(10s) == 0));
}

BOOST_AUTO_TEST_CASE(a_second_sigterm_ends_at_once) {
    node server(cluster.url(database), {{"DRAIN_DELAY_MS", "60000"}});
    server.signal(SIGTERM);
    BOOST_TEST(server.wait_for_event("draining", 5s));
    std::this_thread::sleep_for(100ms);
    BOOST_TEST(server.running());
    server.signal(SIGTERM);
    BOOST_TEST(server.wait_for_exit(3s).has_value());
}

BOOST_FIXTURE_TEST_CASE(sigterm_while_the_database_is_frozen, on_own_cluster) {
    const auto server = start_node();
    cluster.freeze();
    std::jthread asking([&] { lock_client(server->port()).acquire(fresh_name("frozen"), "w", 60); });
    std::this_thread::sleep_for(200ms);
    server->signal(SIGTERM);
    const auto exit_code = server->wait_for_exit(20s);
    cluster.thaw();
    BOOST_TEST((exit_code == 0));
}

BOOST_AUTO_TEST_CASE(five_nodes_start_on_an_empty_database) {
    std::vector<std::unique_ptr<node>> nodes;
    for (int i = 0; i < 5; ++i)
        nodes.push_back(std::make_unique<node>(cluster.url(database), short_limits, node::wait_for::nothing));
    for (const auto& each : nodes)
        BOOST_TEST(each->wait_for_event("ready", 30s), each->log());

    namespace fs = std::filesystem;
    const auto migrations = std::distance(fs::directory_iterator(HOLDFAST_SOURCE_DIR "/sql/migrations"), {});
    BOOST_TEST(cluster.psql("SELECT count(*) FROM holdfast.schema_migrations", database) == std::to_string(migrations));
    for (const auto& each : nodes)
        BOOST_TEST(each->running());
}

BOOST_AUTO_TEST_CASE(a_newer_schema_is_refused) {
    start_node();
    cluster.psql(
        "INSERT INTO holdfast.schema_migrations SELECT (jsonb_populate_record(m, "
        "'{\"version\": 9999, \"name\": \"from_the_future\"}')).* FROM holdfast.schema_migrations AS m LIMIT 1",
        database);

    node server(cluster.url(database), short_limits, node::wait_for::nothing);
    const auto exit_code = server.wait_for_exit(20s);
    BOOST_TEST((exit_code == 1));
    const auto refusals = server.events("database_refused");
    BOOST_TEST_REQUIRE(refusals.size() == 1u, server.log());
    const std::string reason(refusals.front().at("reason").as_string());
    BOOST_TEST_MESSAGE(reason);
    BOOST_TEST(reason.find("9999") != std::string::npos, reason);
}

BOOST_AUTO_TEST_CASE(pgbouncer_in_transaction_mode_between) {
    const pgbouncer pooler(cluster.port());
    node::settings settings = short_limits;
    settings["PREPARED_STATEMENTS"] = "false";
    node first(pooler.url(database), settings);  // migrates through it, too
    node second(pooler.url(database), settings);

    lock_client alice(first.port());
    lock_client bob(second.port());
    const std::string resource = fresh_name("pooled");
    BOOST_TEST(alice.look(resource).status == 404);
    const std::int64_t token = alice.acquire(resource, "alice", 60, "key-1").token();
    BOOST_TEST(bob.acquire(resource, "alice", 60, "key-1").token() == token);
    BOOST_TEST(!bob.acquire(resource, "bob", 60).acquired());
    BOOST_TEST(bob.look(resource).token() == token);
    BOOST_TEST(bob.renew(resource, "bob", 60).status == 403);
    BOOST_TEST(bob.renew(resource, "alice", 60, token).status == 200);
    BOOST_TEST(bob.release(resource, "alice", token - 1).status == 403);
    BOOST_TEST(bob.release(resource, "alice", token).status == 204);
    BOOST_TEST(alice.renew(resource, "alice", 60).status == 404);

    // Many at once share few sessions; and one locked row is told within its time, although the limit is no session's.
    crowd users({first.port(), second.port()}, 16);
    BOOST_REQUIRE(alice.acquire(resource, "alice", 60).acquired());
    {
        const row_lock stranger(cluster, database, resource);
        const reply refused = alice.release(resource, "alice");
        BOOST_TEST(refused.problem() == "overloaded", refused.text());
        BOOST_TEST(refused.duration() < 500ms + allowance);
    }
    BOOST_TEST(wait_until(10s, [&] { return users.served() > 500; }));
    users.stop();
    for (const reply& failure : users.failures())
        BOOST_ERROR("failed request: " << failure.text());
    check_leases(users);
}

BOOST_AUTO_TEST_SUITE_END()
