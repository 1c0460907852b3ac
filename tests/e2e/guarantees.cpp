// G1 to G7 of the contract, each held against real nodes and a real database.

#include "support/psql_session.hpp"
#include "support/shared_nodes.hpp"
#include "support/tcp_gate.hpp"
#include "support/wait_until.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include <signal.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace {

using namespace holdfast::tests;
using namespace std::chrono_literals;

void check_none(const std::vector<std::string>& violations) {
    for (const std::string& violation : violations)
        BOOST_ERROR(violation);
}

/// Microseconds since the epoch, by the database's clock.
std::int64_t database_time_us(const postgres_cluster& cluster) {
    return std::stoll(cluster.psql("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(guarantees)

BOOST_AUTO_TEST_CASE(G1_exclusion_with_nodes_that_die_and_come_back) {
    postgres_cluster& cluster = postgres_cluster::shared();
    const std::string database = cluster.create_database();
    node steady(cluster.url(database));
    auto mortal = std::make_unique<node>(cluster.url(database));
    std::atomic<std::uint16_t> mortal_port = mortal->port();
    std::atomic<bool> over = false;
    lease_recorder recorder;
    std::atomic<int> grants_beside_a_death = 0;
    const std::vector<std::string> resources{fresh_name("exclusive"), fresh_name("exclusive")};

    std::vector<std::jthread> users;
    for (std::size_t number = 0; number < 8; ++number)
        users.emplace_back([&, number] {
            recorded_client client(steady.port(), "user-" + std::to_string(number), recorder);
            for (std::size_t round = number; !over; ++round) {
                client.move_to(number % 2 ? steady.port() : mortal_port.load());
                const std::string& resource = resources[round % resources.size()];
                const reply grant = client.acquire(resource, 1);
                if (grant.status == 200 && grant.acquired()) {
                    ++grants_beside_a_death;
                    std::this_thread::sleep_for(2ms);
                    client.release(resource, grant.token());
                } else if (grant.status == 0) {
                    std::this_thread::sleep_for(20ms);
                }
            }
        });
    for (int death = 0; death < 3; ++death) {
        std::this_thread::sleep_for(500ms);
        mortal->kill();
        mortal = std::make_unique<node>(cluster.url(database));
        mortal_port = mortal->port();
    }
    std::this_thread::sleep_for(500ms);
    over = true;
    users.clear();

    check_none(recorder.violations());
    BOOST_TEST(grants_beside_a_death > 50);
    BOOST_TEST(
        cluster.psql("SELECT max(n) FROM (SELECT count(*) AS n FROM holdfast.distributed_locks GROUP BY resource) "
                     "AS counted",
                     database) == "1");
}

BOOST_AUTO_TEST_CASE(G2_tokens_rise_whatever_happens) {
    postgres_cluster cluster;
    const std::string database = cluster.create_database();
    // Rows are swept as early as the settings allow.
    const node::settings sweeping{{"LOCK_TIMEOUT_MS", "100"},
                                  {"STATEMENT_TIMEOUT_MS", "200"},
                                  {"SWEEP_AFTER_SECONDS", "2"},
                                  {"SWEEP_INTERVAL_SECONDS", "1"}};
    auto first = std::make_unique<node>(cluster.url(database), sweeping);
    node second(cluster.url(database), sweeping);
    const std::string resource = fresh_name("fenced");
    std::int64_t last = 0;
    const auto grant_through = [&](const node& through, const std::string& owner, std::int64_t ttl) {
        reply grant;
        wait_until(5s, [&] {
            grant = lock_client(through.port()).acquire(resource, owner, ttl);
            return grant.status == 200 && grant.acquired();
        });
        BOOST_REQUIRE_MESSAGE(grant.status == 200 && grant.acquired(), grant.text());
        BOOST_TEST(grant.token() > last);
        BOOST_TEST(grant.token() < (std::int64_t{1} << 53));
        last = grant.token();
    };
    const auto release = [&](const std::string& owner) {
        BOOST_TEST(lock_client(second.port()).release(resource, owner).status == 204);
    };

    // Across nodes, owners and releases.
    for (int i = 0; i < 5; ++i) {
        grant_through(*first, "a", 60);
        grant_through(second, "a", 60);
        release("a");
        grant_through(second, "b", 60);
        release("b");
    }
    // Across an expiry.
    grant_through(*first, "a", 1);
    grant_through(second, "b", 1);
    // A renew keeps the token.
    BOOST_TEST(lock_client(first->port()).renew(resource, "b", 60).token() == last);
    release("b");
    // Across a sweep: the row is gone, its token is not forgotten.
    BOOST_TEST(wait_until(
        15s, [&] { return cluster.psql("SELECT count(*) FROM holdfast.distributed_locks", database) == "0"; }));
    grant_through(*first, "a", 60);
    // Across a restart of a node and a crash of the database.
    first->kill();
    first = std::make_unique<node>(cluster.url(database), sweeping);
    grant_through(*first, "a", 60);
    cluster.crash();
    cluster.start();
    grant_through(second, "a", 60);
    // After a restore, the operator moves the tokens ahead of all that may have been granted meanwhile.
    run_to_end({HOLDFAST_BINARY, "migrate", "--advance-tokens"},
               {.environment = {{"HOLDFAST_DATABASE_URL", cluster.url(database)}}, .output = {}, .user = ""});
    const std::int64_t before = last;
    grant_through(*first, "a", 60);
    BOOST_TEST(last > before + 1000);
}

BOOST_AUTO_TEST_CASE(G3_the_database_clock_stamps_leases) {
    two_users users;
    for (const std::int64_t ttl : {std::int64_t{1}, std::int64_t{60}, std::int64_t{86'400}}) {
        const std::int64_t before_us = database_time_us(postgres_cluster::shared());
        const reply grant = users.alice.acquire(fresh_name("stamped"), "w", ttl);
        const std::int64_t after_us = database_time_us(postgres_cluster::shared());

        const std::int64_t acquired_us = parse_time_us(grant.lease().acquired_at).value();
        BOOST_TEST(acquired_us >= before_us);
        BOOST_TEST(acquired_us <= after_us);
        BOOST_TEST(parse_time_us(grant.lease().expires_at).value() - acquired_us == ttl * 1'000'000);
        BOOST_TEST(grant.lease().expires_in > 0ms);
        BOOST_TEST(grant.lease().expires_in <= std::chrono::seconds(ttl));
    }
}

BOOST_AUTO_TEST_CASE(G3_the_clock_is_read_after_the_row_is_locked) {
    postgres_cluster& cluster = postgres_cluster::shared();
    const std::string database = cluster.create_database();
    // A wait is cut into fiftieths of the limit. Here one of them, four seconds, spans the whole case, so that the same
    // statement waits before and after the leases end.
    node server(cluster.url(database), {{"LOCK_TIMEOUT_MS", "200000"},
                                        {"STATEMENT_TIMEOUT_MS", "201000"},
                                        {"REQUEST_DEADLINE_MS", "202000"},
                                        {"SWEEP_AFTER_SECONDS", "3000"}});
    lock_client holder(server.port());
    const std::string renewed = fresh_name("renewed");
    const std::string wanted = fresh_name("wanted");
    BOOST_REQUIRE(holder.acquire(wanted, "old", 3).acquired());
    const reply ending = holder.acquire(renewed, "old", 3);
    BOOST_REQUIRE(ending.acquired());

    // Two requests wait behind a stranger who keeps the rows until after both leases have ended.
    reply renewal;
    reply grant;
    std::int64_t freed_us = 0;
    {
        auto strangers = std::make_unique<std::pair<row_lock, row_lock>>(
            std::piecewise_construct, std::forward_as_tuple(cluster, database, renewed),
            std::forward_as_tuple(cluster, database, wanted));
        std::jthread renewing([&] { renewal = lock_client(server.port()).renew(renewed, "old", 60); });
        std::jthread acquiring([&] { grant = lock_client(server.port()).acquire(wanted, "new", 60); });
        std::this_thread::sleep_until(ending.when.received + 3200ms);
        freed_us = database_time_us(cluster);
        strangers.reset();
    }
    // On a machine so slow that the leases had ended before, the case would prove nothing.
    BOOST_TEST_REQUIRE((renewal.when.sent < ending.when.sent + ending.lease().expires_in - 200ms));

    // An ended lease is not revived, and a grant is stamped when it was made, not when it was asked for.
    BOOST_TEST((renewal.status == 404), renewal.text());
    BOOST_TEST(lock_client(server.port()).look(renewed).status == 404);
    BOOST_REQUIRE_MESSAGE(grant.status == 200 && grant.acquired(), grant.text());
    BOOST_TEST(parse_time_us(grant.lease().acquired_at).value() >= freed_us);
    BOOST_TEST(grant.lease().expires_in > 0ms);
}

BOOST_AUTO_TEST_CASE(G3_a_rival_that_rolls_back_costs_the_lease_nothing) {
    postgres_cluster& cluster = postgres_cluster::shared();
    const std::string database = cluster.create_database();
    node server(cluster.url(database), {{"LOCK_TIMEOUT_MS", "3500"}});
    const std::string resource = fresh_name("contested");

    reply grant;
    {
        // An insert that is not committed holds up all others of that name; then it never was.
        const psql_session rival(
            cluster, database,
            "BEGIN; INSERT INTO holdfast.distributed_locks (fencing_token, acquired_at, expires_at, "
            "resource, owner) VALUES (1, now(), now() + interval '1 hour', '" +
                resource + "', 'rival'); SELECT pg_sleep(2.5); ROLLBACK");
        BOOST_TEST(wait_until(5s, [&] {
            return cluster.psql(
                       "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(2.5)%' AND "
                       "wait_event = 'PgSleep'") == "1";
        }));
        grant = lock_client(server.port()).acquire(resource, "w", 3);
    }

    BOOST_REQUIRE_MESSAGE(grant.status == 200 && grant.acquired(), grant.text());
    BOOST_TEST_MESSAGE("granted after " << grant.duration().count() << " ms");
    // It did wait; had it paid for that with its lease, as much would be missing.
    BOOST_TEST(grant.duration() > 1000ms);
    BOOST_TEST(grant.lease().expires_in > 2500ms);
    BOOST_TEST(grant.lease().expires_in <= 3000ms);
    BOOST_TEST(parse_time_us(grant.lease().expires_at).value() - parse_time_us(grant.lease().acquired_at).value() ==
               3'000'000);
}

BOOST_AUTO_TEST_CASE(G4_only_the_holder_renews_and_releases) {
    two_users users;
    const std::string resource = fresh_name("owned");
    const std::int64_t old_token = users.alice.acquire(resource, "holder", 60).token();
    const std::int64_t token = users.alice.acquire(resource, "holder", 60).token();

    struct attempt {
        std::string owner;
        std::optional<std::int64_t> token;
    };
    const std::vector<attempt> refused{{"other", {}},          {"other", token},      {"Holder", token},
                                       {"holder", old_token},  {"holder", token + 1}, {"holder", 0},
                                       {"holder\u200b", token}};
    for (const attempt& each : refused) {
        BOOST_TEST(users.bob.renew(resource, each.owner, 3600, each.token).status == 403, each.owner);
        BOOST_TEST(users.bob.release(resource, each.owner, each.token).status == 403, each.owner);
        BOOST_TEST(users.bob.post_release(resource, each.owner, each.token).status == 403, each.owner);
    }
    BOOST_TEST(users.bob.look(resource).token() == token);
    BOOST_TEST(users.bob.renew(resource, "holder", 1, token).status == 200);

    // Ended is ended, for the holder too.
    BOOST_TEST(wait_until(5s, [&] { return users.bob.look(resource).status == 404; }));
    BOOST_TEST(users.alice.renew(resource, "holder", 60, token).status == 404);
    BOOST_TEST(users.alice.release(resource, "holder", token).status == 404);
    BOOST_TEST(users.bob.look(resource).status == 404);
}

BOOST_AUTO_TEST_CASE(G5_a_lost_answer_is_told_as_such) {
    postgres_cluster& cluster = postgres_cluster::shared();
    const std::string database = cluster.create_database();
    tcp_gate gate(cluster.port());
    node server("postgresql://holdfast@127.0.0.1:" + std::to_string(gate.port()) + "/" + database,
                {{"REQUEST_DEADLINE_MS", "1500"}, {"STATEMENT_TIMEOUT_MS", "1200"}, {"LOCK_TIMEOUT_MS", "500"}});
    node other(cluster.url(database));
    const std::string kept = fresh_name("kept");
    const std::int64_t kept_token = lock_client(other.port()).acquire(kept, "w", 60).token();
    const std::string wanted = fresh_name("wanted");

    // What is sent arrives and takes effect; the answers do not come back.
    gate.stall(tcp_gate::direction::to_client);
    reply acquired;
    reply released;
    {
        std::jthread acquiring([&] { acquired = lock_client(server.port()).acquire(wanted, "w", 60, "key-1"); });
        released = lock_client(server.port()).release(kept, "w", kept_token);
    }
    for (const reply& unknown : {acquired, released}) {
        BOOST_TEST(unknown.status == 503, unknown.text());
        BOOST_TEST(unknown.problem() == "outcome-unknown", unknown.text());
        BOOST_TEST(outside_the_contract(unknown) == "");
        BOOST_TEST(unknown.duration() < 4s);
    }
    gate.pass();

    // Whoever asks finds out, and the key leads to the very grant that was made.
    const auto seen = lock_client(other.port()).look(wanted);
    BOOST_REQUIRE_MESSAGE(seen.status == 200, seen.text());
    BOOST_TEST(lock_client(other.port()).look(kept).status == 404);
    BOOST_TEST(server.wait_until_ready(5s));
    BOOST_TEST(lock_client(server.port()).acquire(wanted, "w", 60, "key-1").token() == seen.token());
}

BOOST_AUTO_TEST_CASE(G5_what_was_not_sent_had_no_effect) {
    postgres_cluster& cluster = postgres_cluster::shared();
    const std::string database = cluster.create_database();
    tcp_gate gate(cluster.port());
    node server("postgresql://holdfast@127.0.0.1:" + std::to_string(gate.port()) + "/" + database);
    const std::string resource = fresh_name("unsent");

    gate.refuse();
    BOOST_TEST(wait_until(5s, [&] { return lock_client(server.port()).get("/readyz").status == 503; }));
    const reply refused = lock_client(server.port()).acquire(resource, "w", 60);
    BOOST_TEST(refused.status == 503, refused.text());
    BOOST_TEST(refused.problem() == "unavailable", refused.text());
    gate.pass();

    BOOST_TEST(server.wait_until_ready(5s));
    BOOST_TEST(cluster.psql("SELECT count(*) FROM holdfast.distributed_locks", database) == "0");
}

BOOST_AUTO_TEST_CASE(G6_what_was_acknowledged_survives_a_crash_of_the_database) {
    postgres_cluster cluster(postgres_cluster::settings{{"log_statement", "all"}});
    const std::string database = cluster.create_database();
    node server(cluster.url(database));
    for (int round = 0; round < 3; ++round) {
        std::mutex mutex;
        std::vector<reply> grants;
        std::atomic<bool> over = false;
        std::vector<std::jthread> users;
        for (int number = 0; number < 4; ++number)
            users.emplace_back([&] {
                lock_client client(server.port());
                while (!over) {
                    const reply grant = client.acquire(fresh_name("durable"), "w", 600);
                    if (grant.status != 200) continue;
                    const std::lock_guard guard(mutex);
                    grants.push_back(grant);
                }
            });
        wait_until(10s, [&] {
            const std::lock_guard guard(mutex);
            return grants.size() > 100;
        });
        cluster.crash();  // in the middle of the work
        over = true;
        users.clear();
        cluster.start();

        BOOST_TEST(grants.size() > 100);
        BOOST_TEST(server.wait_until_ready(10s));
        lock_client client(server.port());
        for (const reply& grant : grants) {
            const reply seen = client.look(grant.lease().resource);
            BOOST_TEST_REQUIRE(seen.status == 200, "lost: " << grant.text() << "; " << seen.text());
            BOOST_TEST_REQUIRE(seen.token() == grant.token());
        }
    }
    // Nor does the node ask the database to be careless.
    const std::string log = cluster.log();
    BOOST_TEST(log.find("distributed_locks") != std::string::npos);
    BOOST_TEST(log.find("synchronous_commit") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(G7_trouble_stays_where_it_is) {
    postgres_cluster& cluster = postgres_cluster::shared();
    const std::string database = cluster.create_database();
    // Whoever waited for the wedged row would take three seconds.
    node server(cluster.url(database), {{"LOCK_TIMEOUT_MS", "3000"}});
    const std::string wedged = fresh_name("wedged");
    BOOST_REQUIRE(lock_client(server.port()).acquire(wedged, "w", 600).acquired());
    const row_lock stranger(cluster, database, wedged);

    std::atomic<bool> over = false;
    std::vector<std::jthread> troublemakers;
    for (int i = 0; i < 4; ++i)
        troublemakers.emplace_back([&] {
            while (!over)
                lock_client(server.port()).release(wedged, "w");
        });
    troublemakers.emplace_back([&] {
        while (!over)
            lock_client(server.port()).request("POST", "/locks/x", std::string(20'000, '['));
    });
    troublemakers.emplace_back([&] {
        auto slow = holdfast::test::http_client::connect("127.0.0.1", server.port());
        while (!over && slow.send("G"))
            std::this_thread::sleep_for(10ms);
    });

    std::chrono::milliseconds slowest{0};
    std::string failure;
    lock_client good(server.port());
    const auto end = std::chrono::steady_clock::now() + 4s;
    while (std::chrono::steady_clock::now() < end) {
        const std::string resource = fresh_name("good");
        const reply grant = good.acquire(resource, "w", 60);
        const reply released = good.release(resource, "w");
        if (grant.status != 200) failure = grant.text();
        if (released.status != 204) failure = released.text();
        slowest = std::max({slowest, grant.duration(), released.duration()});
    }
    const reply looked = good.look(wedged);  // looking waits for nobody
    over = true;
    troublemakers.clear();

    BOOST_TEST(failure == "");
    BOOST_TEST_MESSAGE("slowest: " << slowest.count() << " ms");
    BOOST_TEST(slowest < 1500ms);
    BOOST_TEST(looked.status == 200, looked.text());
    BOOST_TEST(looked.duration() < 1500ms);
}

BOOST_AUTO_TEST_SUITE_END()
