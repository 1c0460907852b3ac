// Big batches on a real database answer as serial execution would, whatever shares a batch with what; and trouble with
// one row or one session stays where it is.
#include "support/linearizability.hpp"
#include "support/lock_history.hpp"
#include "support/pg_fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/test/unit_test.hpp>

#include <signal.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <sstream>
#include <thread>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;
using domain::errc;
using std::chrono::steady_clock;
using tests::call_answer;
using tests::call_kind;
using tests::lock_call;

std::int64_t microseconds(domain::timestamp moment) {
    return moment.time_since_epoch().count();
}

/// A command on its way, and its answer once it has one.
struct submitted {
    std::string resource;
    lock_call call;
    bool ended = false;
    boost::system::error_code failure;  ///< Of a command without outcome.
    boost::asio::cancellation_signal cancel;
};
using submitted_ptr = std::shared_ptr<submitted>;

void show(lock_call& call, const domain::lock& lock) {
    call.answer = call_answer::lease;
    call.shown_owner = lock.owner().text();
    call.shown_token = lock.fencing_token().number();
    call.acquired_at_us = microseconds(lock.acquired_at());
    call.expires_at_us = microseconds(lock.expires_at());
    call.expires_in_ms = lock.expires_in().count();
}

void note(lock_call& call, const domain::acquire_outcome& outcome) {
    if (outcome.result() == domain::acquire_result::granted) return show(call, outcome.grant());
    call.answer = call_answer::refused;
    call.retry_after_ms = outcome.retry_after().count();
}

void note(lock_call& call, const domain::renew_outcome& outcome) {
    if (outcome.result() == domain::renew_result::renewed) return show(call, outcome.lock());
    const bool absent = outcome.result() == domain::renew_result::not_found;
    call.answer = absent ? call_answer::not_found : call_answer::forbidden;
}

void note(lock_call& call, const domain::release_result& outcome) {
    switch (outcome) {
        case domain::release_result::released:
            call.answer = call_answer::released;
            return;
        case domain::release_result::not_found:
            call.answer = call_answer::not_found;
            return;
        case domain::release_result::forbidden:
            call.answer = call_answer::forbidden;
            return;
        case domain::release_result::awaited:
            throw std::logic_error("nobody waits in line here");
    }
}

void note(lock_call& call, const domain::look_outcome& outcome) {
    if (outcome.result() == domain::look_result::found) return show(call, outcome.lock());
    call.answer = call_answer::not_found;
}

template <class Outcome>
boost::asio::awaitable<void> keep(boost::asio::awaitable<domain::result<Outcome>> call, submitted_ptr into) {
    const auto answer = co_await std::move(call);
    into->call.returned_us = tests::wall_clock_us() + 1;
    into->ended = true;
    if (answer)
        note(into->call, *answer);
    else
        into->failure = answer.error();
}

/// Hands the command to the store when the context runs next: whatever is submitted before meets in the queue.
template <class Outcome>
void spawn(tests::node_database& node, boost::asio::awaitable<domain::result<Outcome>> call,
           const submitted_ptr& into) {
    boost::asio::co_spawn(node.context(), keep(std::move(call), into),
                          boost::asio::bind_cancellation_slot(into->cancel.slot(), [into](std::exception_ptr failed) {
                              if (!failed) return;
                              into->ended = true;  // Cancelled.
                              into->failure = boost::asio::error::operation_aborted;
                          }));
}

submitted_ptr submit(tests::node_database& node, const std::string& name, lock_call call) {
    auto into = std::make_shared<submitted>();
    into->resource = name;
    call.called_us = tests::wall_clock_us();
    into->call = call;
    const auto until = steady_clock::now() + node.budget;
    const auto resource = tests::resource(name);
    const auto ttl = tests::seconds(std::max<std::int64_t>(call.ttl_us / 1'000'000, 1));
    std::optional<domain::fencing_token> token;
    if (call.token) token = tests::token(*call.token);
    std::optional<domain::idempotency_key> key;
    if (!call.key.empty()) key = tests::key(call.key);
    switch (call.kind) {
        case call_kind::acquire:
            spawn(node, node.store().acquire({resource, tests::owner(call.owner), ttl, key}, until), into);
            break;
        case call_kind::renew:
            spawn(node, node.store().renew({resource, tests::owner(call.owner), ttl, token}, until), into);
            break;
        case call_kind::release:
            spawn(node, node.store().release({resource, tests::owner(call.owner), token}, until), into);
            break;
        case call_kind::look:
            spawn(node, node.store().look(domain::look_command(resource), until), into);
            break;
    }
    return into;
}

bool all_ended(const std::vector<submitted_ptr>& commands) {
    return std::all_of(commands.begin(), commands.end(), [](const auto& each) { return each->ended; });
}

/// Random commands: two owners and few keys, so that much of it meets its like.
class dice {
public:
    explicit dice(unsigned seed) : random_(seed) {}

    std::int64_t below(std::int64_t bound) {
        return static_cast<std::int64_t>(random_() % static_cast<unsigned>(bound));
    }

    lock_call command(std::int64_t ttl_seconds, std::int64_t last_token, bool looks) {
        lock_call call;
        const std::int64_t what = below(looks ? 10 : 9);
        call.kind = what < 4   ? call_kind::acquire
                    : what < 6 ? call_kind::renew
                    : what < 9 ? call_kind::release
                               : call_kind::look;
        if (call.kind != call_kind::look) call.owner = below(3) ? "alice" : "bob";
        call.ttl_us = ttl_seconds * 1'000'000;
        if (call.kind == call_kind::acquire && below(2)) call.key = "key-" + std::to_string(below(2));
        if (call.kind == call_kind::renew || call.kind == call_kind::release)
            if (below(3) == 0) call.token = below(2) ? last_token : last_token / 2;
        return call;
    }

private:
    std::mt19937 random_;
};

/// One lock whose leases do not end by themselves, served one command after the other.
struct serial_lock {
    bool held = false;
    std::string owner, key;
    std::int64_t token = 0;  ///< Also of the grant before.
    std::int64_t acquired_at_us = 0;

    /// What is wrong with this answer, "" when nothing; and what is so afterwards.
    std::string serve(const lock_call& call) {
        const bool mine = held && owner == call.owner;
        const bool named = !call.token || *call.token == token;
        switch (call.kind) {
            case call_kind::acquire:
                if (held && !mine) return expect(call, call_answer::refused);
                return mine && !call.key.empty() && key == call.key ? expect_same(call) : expect_grant(call);
            case call_kind::renew:
                if (mine && named) return expect_same(call);
                return expect(call, held ? call_answer::forbidden : call_answer::not_found);
            case call_kind::release:
                if (!mine || !named) return expect(call, held ? call_answer::forbidden : call_answer::not_found);
                held = false;
                return expect(call, call_answer::released);
            case call_kind::look:
                break;
        }
        return "not a command for this model";
    }

private:
    static std::string expect(const lock_call& call, call_answer answer) {
        return call.answer == answer ? "" : "answered otherwise: " + call.text();
    }

    std::string expect_same(const lock_call& call) const {
        const bool same = call.answer == call_answer::lease && call.shown_token == token && call.shown_owner == owner &&
                          call.acquired_at_us == acquired_at_us;
        return same ? "" : "not the lease under token " + std::to_string(token) + ": " + call.text();
    }

    std::string expect_grant(const lock_call& call) {
        if (call.answer != call_answer::lease || call.shown_token <= token ||
            call.expires_at_us - call.acquired_at_us != call.ttl_us)
            return "not a new grant after token " + std::to_string(token) + ": " + call.text();
        *this = {true, call.owner, call.key, call.shown_token, call.acquired_at_us};
        return "";
    }
};

/// Judges each resource's commands by the general rules.
void check_linearizable(const std::vector<submitted_ptr>& commands) {
    std::map<std::string, std::vector<lock_call>> histories;
    for (const auto& each : commands) {
        lock_call call = each->call;
        if (each->failure == errc::unavailable || each->failure == errc::overloaded) continue;
        if (each->failure) call.returned_us = call.called_us + 8'000'000;  // Its deadline, and some more.
        if (call.answer != call_answer::unknown || call.kind != call_kind::look)
            histories[each->resource].push_back(call);
    }
    for (const auto& [resource, calls] : histories) {
        const auto judgement = tests::judge_history(calls, 200);
        BOOST_TEST((judgement.verdict == tests::history_verdict::legal), resource << ": " << judgement.why);
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(batch_serial)

BOOST_AUTO_TEST_CASE(writes_are_answered_as_if_served_one_by_one_in_order_of_arrival) {
    auto settings = tests::fresh_settings();
    settings.batch_rows_max = 32;
    tests::node_database node(settings);
    dice random(5);
    std::map<std::string, serial_lock> model;
    std::map<call_answer, int> seen;
    for (int round = 0; round < 25; ++round) {
        std::vector<submitted_ptr> commands;
        const std::int64_t resources = 1 + random.below(round % 2 ? 4 : 40);
        for (int each = 0; each < 300; ++each) {
            const std::string name = "r" + std::to_string(random.below(resources));
            commands.push_back(submit(node, name, random.command(600, model[name].token, false)));
            if (random.below(40) == 0) node.run_for(1ms);  // So that some is under way when the next comes.
        }
        BOOST_REQUIRE(node.run_until(15s, [&] { return all_ended(commands); }));
        for (const auto& each : commands) {
            BOOST_TEST_REQUIRE(!each->failure, each->failure.message());
            const std::string wrong = model[each->resource].serve(each->call);
            BOOST_TEST_REQUIRE(wrong == "", each->resource << ": " << wrong);
            ++seen[each->call.answer];
        }
    }
    for (const auto answer : {call_answer::lease, call_answer::refused, call_answer::released, call_answer::not_found,
                              call_answer::forbidden})
        BOOST_TEST(seen[answer] > 100);
    BOOST_TEST(node.passed_on() > 100u);
}

BOOST_AUTO_TEST_CASE(with_looks_expiry_cancellation_and_two_nodes_every_answer_can_be_explained) {
    const auto settings = tests::fresh_settings();
    tests::node_database one(settings), two(settings);
    dice random(6);
    std::vector<submitted_ptr> commands;
    const auto begin = steady_clock::now();
    for (int wave = 0; wave < 40; ++wave) {
        for (int each = 0; each < 40; ++each) {
            const std::string name = "r" + std::to_string(random.below(5));
            auto& node = random.below(2) ? one : two;
            commands.push_back(submit(node, name, random.command(1, random.below(400), true)));
            if (random.below(100) == 0) {
                if (random.below(2)) node.run_for(1ms);
                commands.back()->cancel.emit(boost::asio::cancellation_type::total);
            }
        }
        // Now and then longer than a lease.
        const auto until = steady_clock::now() + (wave % 10 == 9 ? 1'100ms : 30ms);
        while (steady_clock::now() < until) {
            one.run_for(1ms);
            two.run_for(1ms);
        }
    }
    BOOST_REQUIRE(one.run_until(10s, [&] {
        two.run_for(1ms);
        return all_ended(commands);
    }));
    BOOST_TEST((steady_clock::now() - begin < 20s));
    check_linearizable(commands);
    BOOST_TEST(one.passed_on() + two.passed_on() > 20u);
}

BOOST_AUTO_TEST_CASE(a_row_that_breaks_a_rule_fails_alone) {
    auto settings = tests::fresh_settings();
    settings.connections = 1;  // So that what is submitted at once shares a batch.
    tests::node_database node(settings);
    tests::run_sql(settings, "ALTER TABLE {schema}.distributed_locks ADD CONSTRAINT test CHECK (owner <> 'guilty')");
    for (const auto kind : {call_kind::acquire, call_kind::renew, call_kind::release}) {
        std::vector<submitted_ptr> commands;
        for (int each = 0; each < 60; ++each) {
            lock_call call;
            call.kind = each == 30 ? call_kind::acquire : kind;
            call.owner = each == 30 ? "guilty" : "alice";
            call.ttl_us = 600'000'000;
            commands.push_back(submit(node, each == 30 ? "guilty" : "r" + std::to_string(each), call));
        }
        BOOST_REQUIRE(node.run_until(10s, [&] { return all_ended(commands); }));
        for (const auto& each : commands) {
            if (each->resource == "guilty")
                BOOST_TEST((each->failure == errc::internal), each->call.text());
            else
                BOOST_TEST(!each->failure, each->failure.message() << " of " << each->call.text());
            const auto expected = kind == call_kind::release ? call_answer::released : call_answer::lease;
            if (!each->failure) BOOST_TEST((each->call.answer == expected), each->call.text());
        }
    }
    BOOST_TEST(node.journal().count("statement_failed") == 3u);
}

BOOST_AUTO_TEST_CASE(a_session_that_dies_in_mid_batch_leaves_no_answer_without_proof) {
    auto& cluster = tests::postgres_cluster::shared();
    for (const bool terminated : {true, false}) {
        const auto database = cluster.create_database();
        const auto settings = tests::fresh_settings(cluster, database);
        tests::node_database node(settings);
        node.budget = 1'500ms;
        // A batch with this row in it stays in its middle for a while.
        tests::run_sql(settings,
                       "CREATE FUNCTION {schema}.dawdle() RETURNS trigger LANGUAGE plpgsql AS "
                       "'BEGIN PERFORM pg_sleep(0.7); RETURN NEW; END'; "
                       "CREATE TRIGGER dawdle BEFORE INSERT ON {schema}.distributed_locks FOR EACH ROW "
                       "WHEN (NEW.resource = 'slow') EXECUTE FUNCTION {schema}.dawdle()",
                       cluster, database);
        std::vector<submitted_ptr> commands;
        const auto load = [&](const std::string& stem, int count) {
            for (int each = 0; each < count; ++each) {
                lock_call call;
                call.kind = call_kind::acquire;
                call.owner = "alice";
                call.ttl_us = 600'000'000;
                const bool slow = stem == "first" && each == count / 2;
                commands.push_back(submit(node, slow ? "slow" : stem + std::to_string(each), call));
            }
        };
        load("first", 60);
        pid_t victim = 0;
        BOOST_REQUIRE(node.run_until(5s, [&] {
            const std::string pid = cluster.psql(
                "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = '" + database + "'");
            if (pid != "") victim = std::stoi(pid);
            return victim != 0;
        }));
        if (terminated)
            cluster.psql("SELECT pg_terminate_backend(" + std::to_string(victim) + ")");
        else
            ::kill(victim, SIGSTOP);
        load("second", 500);
        const bool ended = node.run_until(8s, [&] { return all_ended(commands); });
        if (!terminated) ::kill(victim, SIGCONT);
        BOOST_REQUIRE(ended);
        // What the stopped session still has to do is done.
        BOOST_TEST(node.run_until(5s, [&] {
            return cluster.psql("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid = " +
                                std::to_string(victim)) == "0";
        }));

        std::map<std::string, std::string> tokens;
        std::istringstream rows(
            tests::run_sql(settings,
                           "SELECT resource || ' ' || fencing_token FROM {schema}.distributed_locks "
                           "WHERE NOT released AND expires_at > clock_timestamp()",
                           cluster, database));
        for (std::string resource, token; rows >> resource >> token;)
            tokens[resource] = token;
        int unknown = 0, took_effect = 0;
        for (const auto& each : commands) {
            if (!each->failure) {
                BOOST_TEST_REQUIRE(tokens[each->resource] == std::to_string(each->call.shown_token));
            } else {
                BOOST_TEST_REQUIRE((each->failure == errc::outcome_unknown), each->failure.message());
                took_effect += tokens[each->resource] == "" ? 0 : 1;
                BOOST_TEST_REQUIRE(!each->resource.starts_with("second"), each->resource);
                ++unknown;
            }
        }
        BOOST_TEST_MESSAGE(unknown << " of " << commands.size() << " unknown");
        BOOST_TEST(unknown > 0);
        // All of the batch or nothing; and nothing, when it died before its commit.
        BOOST_TEST((took_effect == 0 || (!terminated && took_effect == unknown)), took_effect << " took effect");
    }
}

namespace {

/// Releases of "alice", each with an acquire of "bob" right behind it, for r0, r1 …, which alice holds.
struct pairs {
    pairs(tests::node_database& node, int count, int special, const std::string& next = "bob") {
        for (int each = 0; each < count; ++each) {
            lock_call release;
            release.kind = call_kind::release;
            release.owner = "alice";
            releases.push_back(submit(node, "r" + std::to_string(each), release));
            acquires.push_back(
                submit(node, "r" + std::to_string(each), acquire_by(each == special ? next : std::string("bob"))));
        }
    }

    static lock_call acquire_by(const std::string& who) {
        lock_call call;
        call.kind = call_kind::acquire;
        call.owner = who;
        call.ttl_us = 600'000'000;
        return call;
    }

    static void prepare(tests::node_database& node, int count) {
        std::vector<submitted_ptr> grants;
        for (int each = 0; each < count; ++each)
            grants.push_back(submit(node, "r" + std::to_string(each), acquire_by("alice")));
        BOOST_REQUIRE(node.run_until(10s, [&] { return all_ended(grants); }));
    }

    bool ended() const { return all_ended(releases) && all_ended(acquires); }
    bool passed(int number) const {
        const auto at = static_cast<std::size_t>(number);
        return !releases[at]->failure && releases[at]->call.answer == call_answer::released && !acquires[at]->failure &&
               acquires[at]->call.answer == call_answer::lease && acquires[at]->call.shown_owner == "bob";
    }

    std::vector<submitted_ptr> releases, acquires;
};

constexpr int pair_count = 10;
constexpr int special = 5;

pg::database_settings one_connection(pg::database_settings settings) {
    settings.connections = 1;  // So that what is submitted at once shares a batch.
    return settings;
}

}  // namespace

BOOST_AUTO_TEST_CASE(where_an_acquire_breaks_a_rule_the_release_before_it_is_carried_out) {
    const auto settings = one_connection(tests::fresh_settings());
    tests::node_database node(settings);
    pairs::prepare(node, pair_count);
    tests::run_sql(settings, "ALTER TABLE {schema}.distributed_locks ADD CONSTRAINT test CHECK (owner <> 'guilty')");
    const pairs commands(node, pair_count, special, "guilty");
    BOOST_REQUIRE(node.run_until(10s, [&] { return commands.ended(); }));
    for (int each = 0; each < pair_count; ++each)
        if (each != special) BOOST_TEST(commands.passed(each), each);
    BOOST_TEST((commands.releases[special]->call.answer == call_answer::released));
    BOOST_TEST((commands.acquires[special]->failure == errc::internal));
    BOOST_TEST(tests::run_sql(settings, "SELECT released FROM {schema}.distributed_locks WHERE resource = 'r5'") ==
               "t");
}

BOOST_AUTO_TEST_CASE(a_pair_on_a_locked_row_waits_for_it_alone) {
    const auto settings = one_connection(tests::fresh_settings());
    tests::node_database node(settings);
    pairs::prepare(node, pair_count);
    tests::stranger stranger(settings);
    stranger.run("BEGIN");
    stranger.run("SELECT 1 FROM {schema}.distributed_locks WHERE resource = 'r5' FOR UPDATE");
    const pairs commands(node, pair_count, special);
    BOOST_REQUIRE(node.run_until(5s, [&] { return commands.ended(); }));
    for (int each = 0; each < pair_count; ++each)
        if (each != special) BOOST_TEST(commands.passed(each), each);
    BOOST_TEST(node.passed_on() == std::size_t{pair_count - 1});
    const std::int64_t others_us = commands.acquires[0]->call.returned_us - commands.acquires[0]->call.called_us;
    const std::int64_t locked_us =
        commands.acquires[special]->call.returned_us - commands.acquires[special]->call.called_us;
    BOOST_TEST(others_us < locked_us);
    BOOST_TEST((commands.releases[special]->failure == errc::overloaded));
    BOOST_TEST((commands.acquires[special]->failure == errc::overloaded));
    stranger.run("ROLLBACK");
    BOOST_TEST(tests::run_sql(settings,
                              "SELECT owner FROM {schema}.distributed_locks WHERE resource = 'r5' AND NOT released") ==
               "alice");
}

BOOST_AUTO_TEST_CASE(pairs_under_way_when_the_session_dies_are_unknown_and_had_no_effect) {
    auto& cluster = tests::postgres_cluster::shared();
    const auto database = cluster.create_database();
    const auto settings = one_connection(tests::fresh_settings(cluster, database));
    tests::node_database node(settings);
    pairs::prepare(node, pair_count);
    tests::run_sql(settings,
                   "CREATE FUNCTION {schema}.dawdle() RETURNS trigger LANGUAGE plpgsql AS "
                   "'BEGIN PERFORM pg_sleep(0.7); RETURN NEW; END'; "
                   "CREATE TRIGGER dawdle BEFORE UPDATE ON {schema}.distributed_locks FOR EACH ROW "
                   "WHEN (NEW.resource = 'r5') EXECUTE FUNCTION {schema}.dawdle()",
                   cluster, database);
    const pairs commands(node, pair_count, special);
    std::string pid;
    BOOST_REQUIRE(node.run_until(5s, [&] {
        pid = cluster.psql("SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = '" + database +
                           "'");
        return pid != "";
    }));
    cluster.psql("SELECT pg_terminate_backend(" + pid + ")");
    BOOST_REQUIRE(node.run_until(8s, [&] { return commands.ended(); }));
    for (int each = 0; each < pair_count; ++each) {
        const auto at = static_cast<std::size_t>(each);
        BOOST_TEST((commands.releases[at]->failure == errc::outcome_unknown), each);
        BOOST_TEST((commands.acquires[at]->failure == errc::outcome_unknown), each);
    }
    BOOST_TEST(tests::run_sql(settings,
                              "SELECT count(*) FROM {schema}.distributed_locks WHERE owner = 'alice' AND NOT released",
                              cluster, database) == std::to_string(pair_count));
}

BOOST_AUTO_TEST_CASE(fifty_hot_resources_over_two_nodes_do_not_deadlock) {
    auto& cluster = tests::postgres_cluster::shared();
    const auto database = cluster.create_database();
    const auto settings = tests::fresh_settings(cluster, database);
    tests::node_database one(settings), two(settings);
    const std::string deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = '" + database + "'";
    const std::string before = cluster.psql(deadlocks);
    std::array<std::size_t, 2> served{}, failed{};
    const auto live = [&](tests::node_database& node, std::size_t number) {
        dice random(static_cast<unsigned>(number));
        const auto end = steady_clock::now() + 8s;
        while (steady_clock::now() < end) {
            std::vector<submitted_ptr> commands;
            for (int each = 0; each < 200; ++each)
                commands.push_back(submit(node, "hot " + std::to_string(random.below(50)), random.command(1, 0, true)));
            node.run_until(10s, [&] { return all_ended(commands); });
            for (const auto& each : commands)
                each->ended && !each->failure ? ++served[number] : ++failed[number];
        }
    };
    {
        std::jthread other([&] { live(two, 1); });
        live(one, 0);
    }
    BOOST_TEST_MESSAGE("served " << served[0] << " and " << served[1]);
    for (const std::size_t node : {0u, 1u}) {
        BOOST_TEST(served[node] > 1'000u);
        BOOST_TEST(failed[node] == 0u);
    }
    BOOST_TEST(cluster.psql(deadlocks) == before);
    BOOST_TEST(cluster.log().find("deadlock detected") == std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
