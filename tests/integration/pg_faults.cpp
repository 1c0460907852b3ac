// The contract's section 7, seen from the store: what commands answer while the database misbehaves, and that all is
// well afterwards.
#include "holdfast/pg/migrate.hpp"

#include "support/pg_fixture.hpp"
#include "support/pgbouncer.hpp"
#include "support/wait_until.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/test/unit_test.hpp>

#include <csignal>
#include <sstream>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;
using domain::acquire_result;
using domain::errc;
using std::chrono::steady_clock;

constexpr auto recovery = 2s;  // after the database is back (contract, section 7)

/// The backends of this node's ordinary commands: they have prepared a statement on this schema and ran a look last.
std::vector<pid_t> command_backends(tests::node_database& node, const tests::postgres_cluster& cluster) {
    // Bring every thread to run a look: more at once than there are threads.
    for (int round = 0; round < 20; ++round) {
        std::vector<std::shared_ptr<tests::pending<domain::look_outcome>>> looks;
        for (int each = 0; each < 8; ++each)
            looks.push_back(node.start_look("nobody"));
        for (auto& look : looks)
            BOOST_REQUIRE(node.finish(look));
    }
    std::istringstream lines(cluster.psql(
        "SELECT pid FROM pg_stat_activity WHERE query LIKE '%Who holds each resource%' AND strpos(query, '" +
        node.settings().schema + "') > 0 AND pid <> pg_backend_pid()"));
    std::vector<pid_t> pids;
    for (pid_t pid; lines >> pid;)
        pids.push_back(pid);
    return pids;
}

pg::database_settings one_connection(const tests::postgres_cluster& cluster = tests::postgres_cluster::shared()) {
    auto settings = tests::fresh_settings(cluster);
    settings.connections = 1;
    return settings;
}

/// The database serves this node again within the promised time.
void must_recover(tests::node_database& node, const std::string& name = "after the fault") {
    const auto start = steady_clock::now();
    BOOST_TEST(node.run_until(recovery, [&] { return node.database().ready(); }));
    bool granted = false;
    while (!granted && steady_clock::now() - start < recovery) {
        const auto answer = node.acquire({tests::resource(name), tests::owner("alice"), tests::seconds(30)});
        granted = answer && answer->result() == acquire_result::granted;
    }
    BOOST_TEST(granted);
}

template <class Outcome>
std::string named(const domain::result<Outcome>& answer) {
    return answer ? "an outcome" : answer.error().message();
}

/// Each within the lock time limit of a second, and some for a slow machine.
void must_be_overloaded(tests::node_database& node, const std::vector<tests::node_database::pending_acquire>& stuck) {
    for (const auto& command : stuck) {
        node.finish(command);
        BOOST_TEST(command->failed_with(errc::overloaded));
        BOOST_TEST(command->took.count() < 1'800);
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pg_faults)

BOOST_AUTO_TEST_CASE(database_down_is_unavailable_at_once_and_recovers) {
    tests::postgres_cluster cluster;
    tests::node_database node(tests::fresh_settings(cluster));
    const auto held = node.must_acquire("held", "alice", 600);
    for (int round = 0; round < 2; ++round) {
        round == 0 ? cluster.stop() : cluster.crash();
        BOOST_TEST(node.run_until(2s, [&] { return !node.database().ready(); }));
        node.run_for(1s);  // every thread has found out
        for (int each = 0; each < 5; ++each) {
            const auto acquire = node.start_acquire("a", "alice");
            const auto look = node.start_look("a");
            node.finish(acquire);
            node.finish(look);
            BOOST_TEST(acquire->failed_with(errc::unavailable));
            BOOST_TEST(look->failed_with(errc::unavailable));
            BOOST_TEST(acquire->took.count() < 500);
        }
        cluster.start();
        must_recover(node);
        const auto next = node.must_acquire("token", "alice", 30);
        BOOST_TEST((next.fencing_token() > held.fencing_token()));
        node.must_be_refused("held", "bob");
    }
    BOOST_TEST(node.journal().count("database_lost") >= 2u);
    BOOST_TEST(node.journal().count("database_connected") >= 3u);
}

BOOST_AUTO_TEST_CASE(commands_under_way_when_the_database_stops_are_never_told_a_lie) {
    tests::postgres_cluster cluster;
    tests::node_database node(tests::fresh_settings(cluster));
    std::map<std::string, tests::node_database::pending_acquire> commands;
    for (int each = 0; each < 400; ++each) {
        const auto name = "r" + std::to_string(each);
        commands[name] = node.start_acquire(name, "alice", 600);
        if (each == 200) cluster.stop();
    }
    for (auto& [name, command] : commands)
        node.finish(command);
    cluster.start();
    must_recover(node);
    for (auto& [name, command] : commands) {
        if (*command->answer) {
            BOOST_TEST(node.is_held(name));  // acknowledged, so it is there
        } else if (!command->failed_with(errc::outcome_unknown)) {
            BOOST_TEST(named(*command->answer) == make_error_code(errc::unavailable).message());
            BOOST_TEST(!node.is_held(name));  // certainly no effect
        }
    }
}

BOOST_AUTO_TEST_CASE(backends_terminated_while_idle_fail_no_command) {
    tests::node_database node(tests::fresh_settings());
    auto& cluster = tests::postgres_cluster::shared();
    for (int round = 0; round < 3; ++round) {
        for (const pid_t pid : command_backends(node, cluster))
            cluster.psql("SELECT pg_terminate_backend(" + std::to_string(pid) + ")");
        std::vector<tests::node_database::pending_acquire> commands;
        for (int each = 0; each < 20; ++each)
            commands.push_back(node.start_acquire("r" + std::to_string(each), "alice"));
        for (auto& command : commands)
            BOOST_TEST(node.finish(command).has_value(), named(*command->answer));
    }
}

BOOST_AUTO_TEST_CASE(a_backend_terminated_while_running_leaves_the_outcome_unknown) {
    auto settings = one_connection();
    settings.lock_timeout = 100s;  // The slow lane waits for the row, in slices of 2 s.
    tests::node_database node(settings);
    node.must_acquire("a", "alice", 600);
    tests::stranger stranger(settings);
    stranger.run("BEGIN");
    stranger.run("SELECT 1 FROM {schema}.distributed_locks FOR UPDATE");
    const auto renew = node.start_renew("a", "alice");
    node.run_for(300ms);
    BOOST_TEST(!renew->ended());
    stranger.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%Moves "
        "the end%'");
    node.finish(renew);
    BOOST_TEST(renew->failed_with(errc::outcome_unknown));
    stranger.run("ROLLBACK");
    must_recover(node);
}

BOOST_AUTO_TEST_CASE(a_stopped_backend_that_runs_late_grants_nothing) {
    auto& cluster = tests::postgres_cluster::shared();
    tests::node_database node(one_connection());
    const auto backends = command_backends(node, cluster);
    BOOST_REQUIRE(backends.size() == 1u);
    BOOST_REQUIRE(::kill(backends[0], SIGSTOP) == 0);
    node.budget = 700ms;
    const auto stuck = node.start_acquire("a", "alice", 600);
    node.finish(stuck);
    BOOST_TEST(stuck->failed_with(errc::outcome_unknown));
    BOOST_TEST(stuck->took.count() < 1'000);

    // The thread has recovered while the backend is still stopped.
    node.budget = 5s;
    node.run_for(300ms);
    must_recover(node);
    BOOST_TEST(node.journal().count("stuck_connection_shut_down") == 1u);

    // Now the backend runs what it was sent.
    BOOST_REQUIRE(::kill(backends[0], SIGCONT) == 0);
    BOOST_TEST(tests::wait_until(5s, [&] {
        return cluster.psql("SELECT count(*) FROM pg_stat_activity WHERE pid = " + std::to_string(backends[0])) == "0";
    }));
    BOOST_TEST(!node.is_held("a"));
    BOOST_TEST(
        tests::run_sql(node.settings(), "SELECT count(*) FROM {schema}.distributed_locks WHERE resource = 'a'") == "0");
}

BOOST_AUTO_TEST_CASE(a_stopped_backend_makes_a_look_unavailable) {
    auto& cluster = tests::postgres_cluster::shared();
    tests::node_database node(one_connection());
    const auto backends = command_backends(node, cluster);
    BOOST_REQUIRE(backends.size() == 1u);
    BOOST_REQUIRE(::kill(backends[0], SIGSTOP) == 0);
    node.budget = 300ms;
    const auto look = node.start_look("a");
    const auto queued = node.start_acquire("b", "alice");
    node.finish(look);
    node.finish(queued);
    ::kill(backends[0], SIGCONT);
    BOOST_TEST(look->failed_with(errc::unavailable));
    BOOST_TEST(queued->failed_with(errc::overloaded));  // never sent
    node.budget = 5s;
    must_recover(node);
}

BOOST_AUTO_TEST_CASE(a_frozen_database_is_unknown_or_unavailable_and_recovers) {
    tests::postgres_cluster cluster;
    tests::node_database node(tests::fresh_settings(cluster));
    cluster.freeze();
    node.budget = 1s;
    std::vector<tests::node_database::pending_acquire> commands;
    for (int each = 0; each < 20; ++each)
        commands.push_back(node.start_acquire("r" + std::to_string(each), "alice", 600));
    for (auto& command : commands) {
        node.finish(command);
        BOOST_TEST(!command->answer->has_value());
        BOOST_TEST(!command->failed_with(errc::internal));
        BOOST_TEST(command->took.count() < 1'500);
    }
    BOOST_TEST(node.run_until(3s, [&] { return !node.database().ready(); }));
    node.run_for(1s);
    cluster.thaw();
    node.budget = 5s;
    must_recover(node);
    for (int each = 0; each < 20; ++each)
        BOOST_TEST(!node.is_held("r" + std::to_string(each)));
}

BOOST_AUTO_TEST_CASE(one_wedged_row_delays_only_those_who_ask_for_it) {
    tests::node_database node(tests::fresh_settings());
    node.must_acquire("wedged", "alice", 600);
    tests::stranger stranger(node.settings());
    stranger.run("BEGIN");
    stranger.run("SELECT 1 FROM {schema}.distributed_locks WHERE resource = 'wedged' FOR UPDATE");

    std::vector<tests::node_database::pending_acquire> stuck;
    for (int each = 0; each < 50; ++each)
        stuck.push_back(node.start_acquire("wedged", each % 2 ? "alice" : "bob"));
    std::vector<std::int64_t> latencies_ms;
    while (!stuck.front()->ended()) {
        const auto other = node.start_acquire("other " + std::to_string(latencies_ms.size() % 20), "carol");
        BOOST_REQUIRE(node.finish(other));
        latencies_ms.push_back(other->took.count());
    }
    for (auto& command : stuck) {
        node.finish(command);
        BOOST_TEST(command->failed_with(errc::overloaded));
        BOOST_TEST(command->took.count() >= 500);  // the last ones came while the first waited
        BOOST_TEST(command->took.count() < 1'600);
    }
    std::sort(latencies_ms.begin(), latencies_ms.end());
    BOOST_TEST(latencies_ms.size() > 20u);
    BOOST_TEST(latencies_ms[latencies_ms.size() / 2] < 50);
    BOOST_TEST(latencies_ms[latencies_ms.size() * 95 / 100] < 200);
    BOOST_TEST(node.is_held("wedged"));  // looks wait for nobody

    stranger.run("ROLLBACK");
    node.must_acquire("wedged", "alice", 30);
}

BOOST_AUTO_TEST_CASE(many_wedged_rows_do_not_hold_up_a_row_that_is_briefly_busy) {
    tests::node_database node(tests::fresh_settings());
    std::vector<std::string> wedged;
    for (int each = 0; each < 20; ++each)
        wedged.push_back("w" + std::to_string(each));
    for (const std::string& name : wedged)
        node.must_acquire(name, "alice", 600);
    node.must_acquire("busy", "alice", 600);
    tests::stranger wedge(node.settings()), brief(node.settings());
    wedge.run("BEGIN");
    wedge.run("SELECT 1 FROM {schema}.distributed_locks WHERE resource LIKE 'w%' FOR UPDATE");
    brief.run("BEGIN");
    brief.run("SELECT 1 FROM {schema}.distributed_locks WHERE resource = 'busy' FOR UPDATE");
    std::vector<tests::node_database::pending_acquire> stuck;
    for (const std::string& name : wedged)
        stuck.push_back(node.start_acquire(name, "bob"));
    node.run_for(50ms);
    const auto busy = node.start_acquire("busy", "alice");
    node.run_for(100ms);
    brief.run("COMMIT");
    BOOST_REQUIRE(node.finish(busy));
    BOOST_TEST(busy->took.count() < 700);
    must_be_overloaded(node, stuck);
}

BOOST_AUTO_TEST_CASE(many_uncommitted_rival_inserts_hold_up_nobody_else) {
    tests::node_database node(tests::fresh_settings());
    tests::stranger stranger(node.settings());
    stranger.run("BEGIN");
    stranger.run(
        "INSERT INTO {schema}.distributed_locks (resource, owner, acquired_at, expires_at, fencing_token) SELECT 'w' "
        "|| n, "
        "'rival', clock_timestamp(), clock_timestamp() + interval '30 s', nextval({fencing_tokens}) FROM "
        "generate_series(0, 19) AS n");
    std::vector<tests::node_database::pending_acquire> stuck, others;
    for (int each = 0; each < 20; ++each)
        stuck.push_back(node.start_acquire("w" + std::to_string(each), "alice"));
    for (int each = 0; each < 20; ++each)
        others.push_back(node.start_acquire("r" + std::to_string(each), "alice"));
    for (auto& command : others) {
        BOOST_TEST(node.finish(command).has_value());
        BOOST_TEST(command->took.count() < 700);
    }
    must_be_overloaded(node, stuck);
}

BOOST_AUTO_TEST_CASE(an_uncommitted_rival_insert_delays_only_those_who_ask_for_it) {
    tests::node_database node(tests::fresh_settings());
    tests::stranger stranger(node.settings());
    stranger.run("BEGIN");
    stranger.run(
        "INSERT INTO {schema}.distributed_locks (resource, owner, acquired_at, expires_at, fencing_token) VALUES "
        "('wedged', 'rival', clock_timestamp(), clock_timestamp() + interval '30 s', nextval({fencing_tokens}))");
    std::vector<tests::node_database::pending_acquire> stuck;
    for (int each = 0; each < 50; ++each)
        stuck.push_back(node.start_acquire("wedged", "alice"));
    std::vector<tests::node_database::pending_acquire> others;
    for (int each = 0; each < 50; ++each)
        others.push_back(node.start_acquire("r" + std::to_string(each), "alice"));
    for (auto& command : others) {
        BOOST_TEST(node.finish(command).has_value());
        BOOST_TEST(command->took.count() < 500);
    }
    for (auto& command : stuck) {
        node.finish(command);
        BOOST_TEST(command->failed_with(errc::overloaded));
        BOOST_TEST(command->took.count() < 1'700);
    }
    stranger.run("ROLLBACK");
    node.must_acquire("wedged", "alice", 30);
}

BOOST_AUTO_TEST_CASE(a_database_that_turns_read_only_is_unavailable_for_looks_too) {
    tests::postgres_cluster cluster;
    tests::node_database node(tests::fresh_settings(cluster));
    node.must_acquire("a", "alice", 600);
    cluster.psql("ALTER SYSTEM SET default_transaction_read_only = on");
    cluster.psql("SELECT pg_reload_conf()");
    tests::wait_until(2s, [&] { return cluster.psql("SHOW transaction_read_only") == "on"; });

    for (int round = 0; round < 10; ++round) {
        const auto look = node.start_look("a");
        const auto acquire = node.start_acquire("b", "alice");
        const auto renew = node.start_renew("a", "alice");
        const auto release = node.start_release("a", "alice");
        node.finish(look);
        node.finish(acquire);
        node.finish(renew);
        node.finish(release);
        BOOST_TEST(look->failed_with(errc::unavailable));
        BOOST_TEST(acquire->failed_with(errc::unavailable));
        BOOST_TEST(renew->failed_with(errc::unavailable));
        BOOST_TEST(release->failed_with(errc::unavailable));
    }
    BOOST_TEST(node.run_until(2s, [&] { return !node.database().ready(); }));
    cluster.psql("ALTER SYSTEM RESET default_transaction_read_only");
    cluster.psql("SELECT pg_reload_conf()");
    must_recover(node);
    BOOST_TEST(node.is_held("a"));
}

BOOST_AUTO_TEST_CASE(a_role_that_may_not_write_is_not_ready) {
    tests::postgres_cluster cluster;
    cluster.psql("CREATE ROLE clerk LOGIN");
    const auto database = cluster.create_database("OWNER clerk");
    auto settings = tests::fresh_settings(cluster, database);
    settings.url.replace(settings.url.find("holdfast@"), 8, "clerk");
    tests::node_database node(settings);
    const std::string table = "\"" + settings.schema + "\".distributed_locks";

    cluster.psql("ALTER TABLE " + table + " OWNER TO holdfast", database);
    cluster.psql("GRANT SELECT, INSERT ON " + table + " TO clerk", database);
    BOOST_TEST(node.run_until(3s, [&] { return !node.database().ready(); }));

    cluster.psql("GRANT UPDATE ON " + table + " TO clerk", database);
    BOOST_TEST(node.run_until(3s, [&] { return node.database().ready(); }));
}

BOOST_AUTO_TEST_CASE(a_read_only_database_at_start_is_unavailable_until_it_is_writable) {
    auto& cluster = tests::postgres_cluster::shared();
    const auto database = cluster.create_database();
    const auto settings = tests::fresh_settings(cluster, database);
    pg::migrate(settings);
    cluster.psql("ALTER DATABASE \"" + database + "\" SET default_transaction_read_only = on");
    tests::node_database node(settings, false);
    node.run_for(700ms);
    BOOST_TEST(!node.database().ready());
    BOOST_TEST((node.look(domain::look_command(tests::resource("a"))).error() == errc::unavailable));
    BOOST_TEST(
        (node.acquire({tests::resource("a"), tests::owner("o"), tests::seconds(30)}).error() == errc::unavailable));
    BOOST_TEST(node.refused() == "");
    cluster.psql("ALTER DATABASE \"" + database + "\" SET default_transaction_read_only = off");
    must_recover(node);
}

BOOST_AUTO_TEST_CASE(out_of_connections_is_unavailable_and_recovers) {
    auto& cluster = tests::postgres_cluster::shared();
    const auto database = cluster.create_database();
    const auto settings = tests::fresh_settings(cluster, database);
    pg::migrate(settings);
    // Superusers pass a database's limit; an ordinary role does not.
    const std::string role = "limited_" + database;
    cluster.psql("CREATE ROLE \"" + role + "\" LOGIN; GRANT ALL ON SCHEMA \"" + settings.schema + "\" TO \"" + role +
                     "\"; GRANT ALL ON ALL TABLES IN SCHEMA \"" + settings.schema + "\" TO \"" + role +
                     "\"; GRANT ALL ON ALL SEQUENCES IN SCHEMA \"" + settings.schema + "\" TO \"" + role + "\"",
                 database);
    cluster.psql("ALTER DATABASE \"" + database + "\" CONNECTION LIMIT 0");
    auto limited = settings;
    limited.url = "host=127.0.0.1 port=" + std::to_string(cluster.port()) + " dbname=" + database + " user=" + role;
    tests::node_database node(limited, false);
    node.run_for(500ms);
    BOOST_TEST(!node.database().ready());
    BOOST_TEST(
        (node.acquire({tests::resource("a"), tests::owner("o"), tests::seconds(30)}).error() == errc::unavailable));
    cluster.psql("ALTER DATABASE \"" + database + "\" CONNECTION LIMIT 50");
    must_recover(node);
}

BOOST_AUTO_TEST_CASE(the_role_s_statement_limit_is_overloaded) {
    auto& cluster = tests::postgres_cluster::shared();
    const auto database = cluster.create_database();
    auto settings = tests::fresh_settings(cluster, database);
    settings.statement_timeout = 300ms;
    settings.lock_timeout = 100s;
    tests::node_database node(settings);
    node.must_acquire("a", "alice", 600);
    tests::stranger stranger(settings);
    stranger.run("BEGIN");
    stranger.run("SELECT 1 FROM {schema}.distributed_locks FOR UPDATE");
    const auto renew = node.start_renew("a", "alice");
    node.finish(renew);
    BOOST_TEST(renew->failed_with(errc::overloaded));
    BOOST_TEST(renew->took.count() < 1'000);
}

BOOST_AUTO_TEST_CASE(without_prepared_statements_everything_works) {
    auto settings = tests::fresh_settings();
    settings.prepared_statements = false;
    tests::node_database node(settings);
    tests::conformance::names_of_every_kind_survive(node);
    tests::conformance::renew_moves_the_end_and_keeps_the_rest(node);
    BOOST_TEST(tests::postgres_cluster::shared().psql("SELECT count(*) FROM pg_prepared_statements") == "0");
}

BOOST_AUTO_TEST_CASE(behind_pgbouncer_in_transaction_mode_everything_works) {
    auto& cluster = tests::postgres_cluster::shared();
    const tests::pgbouncer pooler(cluster.port());
    auto settings = tests::fresh_settings(cluster);
    settings.url = pooler.url("postgres");
    settings.prepared_statements = false;
    tests::node_database node(settings);
    tests::conformance::names_of_every_kind_survive(node);
    tests::conformance::renew_refuses_other_owners_and_other_tokens(node);

    auto direct = settings;
    direct.url = cluster.url();
    tests::stranger stranger(direct);
    stranger.run("BEGIN");
    stranger.run(
        "INSERT INTO {schema}.distributed_locks (resource, owner, acquired_at, expires_at, fencing_token) "
        "VALUES ('wedged', 'rival', now(), now(), nextval({fencing_tokens}))");
    const auto stuck = node.start_acquire("wedged", "alice");
    std::vector<tests::node_database::pending_acquire> others;
    for (int each = 0; each < 20; ++each)
        others.push_back(node.start_acquire("r" + std::to_string(each), "alice"));
    for (auto& command : others)
        BOOST_TEST(node.finish(command).has_value(), named(*command->answer));
    node.finish(stuck);
    BOOST_TEST(stuck->failed_with(errc::overloaded));
    stranger.run("ROLLBACK");
    BOOST_TEST(node.acquire({tests::resource("wedged"), tests::owner("alice"), tests::seconds(30)}).has_value());
}

BOOST_AUTO_TEST_CASE(stop_answers_everything_and_comes_to_an_end) {
    tests::node_database node(tests::fresh_settings());
    std::vector<tests::node_database::pending_acquire> commands;
    for (int each = 0; each < 300; ++each)
        commands.push_back(node.start_acquire("r" + std::to_string(each), "alice"));
    const auto start = steady_clock::now();
    node.stop();
    BOOST_TEST((steady_clock::now() - start < 2s));
    for (auto& command : commands) {
        node.finish(command);
        BOOST_TEST((command->answer->has_value() || command->failed_with(errc::unavailable)), named(*command->answer));
    }
    const auto late = node.start_acquire("late", "alice");
    node.finish(late);
    BOOST_TEST(late->failed_with(errc::unavailable));
}

BOOST_AUTO_TEST_SUITE_END()
