// Decision 4 of the architecture: lock first, judge after. Scripted sessions: a stranger holds a row, or inserts one
// and does not commit, while a command waits.
#include "support/pg_fixture.hpp"

#include <boost/test/unit_test.hpp>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;
using domain::acquire_result;
using domain::release_result;
using domain::renew_result;

/// The slow lane waits in slices of a fiftieth: here one slice spans everything that a case does.
pg::database_settings patient_settings() {
    auto settings = tests::fresh_settings();
    settings.lock_timeout = 100s;
    return settings;
}

struct fixture {
    fixture() : node(patient_settings()), stranger(node.settings()) {}

    void lock_row() {
        stranger.run("BEGIN");
        stranger.run("SELECT 1 FROM {schema}.distributed_locks WHERE resource = 'a' FOR UPDATE");
    }

    std::int64_t clock_us() {
        return std::stoll(stranger.run("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"));
    }

    tests::node_database node;
    tests::stranger stranger;
};

std::int64_t microseconds(domain::timestamp moment) {
    return moment.time_since_epoch().count();
}

const std::string rival_insert =
    "INSERT INTO {schema}.distributed_locks (resource, owner, acquired_at, expires_at, fencing_token) VALUES "
    "('a', 'rival', clock_timestamp(), clock_timestamp() + interval '30 s', nextval({fencing_tokens}))";

}  // namespace

BOOST_AUTO_TEST_SUITE(lock_first)

BOOST_AUTO_TEST_CASE(a_lease_that_ends_while_a_renew_waits_is_not_renewed) {
    fixture f;
    f.node.must_acquire("a", "alice", 1);
    f.lock_row();
    const auto renew = f.node.start_renew("a", "alice");
    f.node.run_for(1'200ms);
    BOOST_TEST(!renew->ended());
    f.stranger.run("COMMIT");

    const auto answer = f.node.finish(renew);
    BOOST_REQUIRE(answer);
    BOOST_TEST((answer->result() == renew_result::not_found));
    BOOST_TEST(!f.node.is_held("a"));
}

BOOST_AUTO_TEST_CASE(a_lease_that_ends_while_a_release_waits_is_not_found) {
    fixture f;
    f.node.must_acquire("a", "alice", 1);
    f.lock_row();
    const auto release = f.node.start_release("a", "alice");
    f.node.run_for(1'200ms);
    BOOST_TEST(!release->ended());
    f.stranger.run("COMMIT");

    const auto answer = f.node.finish(release);
    BOOST_REQUIRE(answer);
    BOOST_TEST((*answer == release_result::not_found));
}

BOOST_AUTO_TEST_CASE(a_lease_that_ends_while_an_acquire_waits_is_granted_from_that_moment) {
    fixture f;
    f.node.must_acquire("a", "alice", 1);
    f.lock_row();
    const auto acquire = f.node.start_acquire("a", "bob", 2);
    f.node.run_for(1'500ms);
    BOOST_TEST(!acquire->ended());
    const auto released_us = f.clock_us();
    f.stranger.run("COMMIT");

    const auto answer = f.node.finish(acquire);
    BOOST_REQUIRE(answer);
    BOOST_REQUIRE(answer->result() == acquire_result::granted);
    BOOST_TEST(microseconds(answer->grant().acquired_at()) >= released_us);
    BOOST_TEST((answer->grant().expires_at() - answer->grant().acquired_at() == 2s));
}

BOOST_AUTO_TEST_CASE(a_lease_renewed_while_an_acquire_waits_refuses_with_what_is_left_of_the_new_end) {
    fixture f;
    f.node.must_acquire("a", "alice", 1);
    f.lock_row();
    const auto acquire = f.node.start_acquire("a", "bob");
    f.node.run_for(300ms);
    f.stranger.run("UPDATE {schema}.distributed_locks SET expires_at = clock_timestamp() + interval '100 s'");
    f.stranger.run("COMMIT");

    const auto answer = f.node.finish(acquire);
    BOOST_REQUIRE(answer);
    BOOST_REQUIRE(answer->result() == acquire_result::held);
    BOOST_TEST(answer->retry_after().count() > 90'000);
}

BOOST_AUTO_TEST_CASE(after_a_rolled_back_rival_insert_the_grant_has_its_full_ttl) {
    fixture f;
    f.stranger.run("BEGIN");
    f.stranger.run(rival_insert);
    const auto acquire = f.node.start_acquire("a", "alice", 2);
    f.node.run_for(800ms);
    BOOST_TEST(!acquire->ended());
    const auto rolled_back_us = f.clock_us();
    f.stranger.run("ROLLBACK");

    const auto answer = f.node.finish(acquire);
    BOOST_REQUIRE(answer);
    BOOST_REQUIRE(answer->result() == acquire_result::granted);
    BOOST_TEST(microseconds(answer->grant().acquired_at()) >= rolled_back_us);
    BOOST_TEST((answer->grant().expires_at() - answer->grant().acquired_at() == 2s));
    BOOST_TEST(answer->grant().expires_in().count() > 1'900);
    const auto seen = f.node.look(domain::look_command(tests::resource("a")));
    BOOST_REQUIRE(seen);
    BOOST_TEST((seen->lock().acquired_at() == answer->grant().acquired_at()));
    BOOST_TEST((seen->lock().fencing_token() == answer->grant().fencing_token()));
}

BOOST_AUTO_TEST_CASE(after_a_committed_rival_insert_the_acquire_is_refused) {
    fixture f;
    f.stranger.run("BEGIN");
    f.stranger.run(rival_insert);
    const auto acquire = f.node.start_acquire("a", "alice");
    f.node.run_for(300ms);
    f.stranger.run("COMMIT");

    const auto answer = f.node.finish(acquire);
    BOOST_REQUIRE(answer);
    BOOST_REQUIRE(answer->result() == acquire_result::held);
    BOOST_TEST(answer->retry_after().count() > 25'000);
    BOOST_TEST(answer->retry_after().count() <= 30'000);
}

BOOST_AUTO_TEST_CASE(after_a_committed_rival_insert_that_ended_meanwhile_the_token_is_drawn_after_the_wait) {
    fixture f;
    f.stranger.run("BEGIN");
    const auto acquire = [&] {
        // The acquire draws a number for its insert first, the rival's token is greater.
        f.stranger.run("SELECT 1");
        f.stranger.run(rival_insert);
        return f.node.start_acquire("a", "alice");
    }();
    f.node.run_for(300ms);
    f.stranger.run(
        "UPDATE {schema}.distributed_locks SET expires_at = clock_timestamp(), fencing_token = "
        "nextval({fencing_tokens})");
    const auto rival_token = std::stoll(f.stranger.run("SELECT fencing_token FROM {schema}.distributed_locks"));
    f.stranger.run("COMMIT");

    const auto answer = f.node.finish(acquire);
    BOOST_REQUIRE(answer);
    BOOST_REQUIRE(answer->result() == acquire_result::granted);
    BOOST_TEST(answer->grant().fencing_token().number() > rival_token);
}

BOOST_AUTO_TEST_CASE(a_row_swept_while_a_command_waits_is_judged_afresh) {
    fixture f;
    f.node.must_acquire("a", "alice", 1);
    f.lock_row();
    const auto acquire = f.node.start_acquire("a", "bob");
    f.node.run_for(200ms);
    f.stranger.run("DELETE FROM {schema}.distributed_locks");
    f.stranger.run("COMMIT");

    const auto answer = f.node.finish(acquire);
    BOOST_REQUIRE(answer);
    BOOST_TEST((answer->result() == acquire_result::granted));
}

BOOST_AUTO_TEST_SUITE_END()
