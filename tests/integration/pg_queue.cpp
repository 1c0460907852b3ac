// The waiting line on a real database: what each command does, and what a stranger, another node or a passed moment may
// not do to it.
#include "holdfast/pg/connection.hpp"
#include "holdfast/pg/queue_rows.hpp"

#include "support/pg_fixture.hpp"
#include "support/tcp_gate.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;
using domain::acquire_result;
using domain::release_result;
using std::chrono::steady_clock;

/// The slow lane waits in slices of a fiftieth: here one slice spans everything that a case does.
pg::database_settings patient_settings() {
    auto settings = tests::fresh_settings();
    settings.lock_timeout = 100s;
    return settings;
}

template <class Answer, class Variant>
const Answer& as(const Variant& variant) {
    const auto* answer = std::get_if<Answer>(&variant);
    BOOST_REQUIRE_MESSAGE(answer, "another answer than expected: alternative " << variant.index());
    return *answer;
}

bool concerns(const std::vector<domain::wake>& wakes, const domain::place& place) {
    return std::any_of(wakes.begin(), wakes.end(),
                       [&](const domain::wake& each) { return each.place_number == place.number(); });
}

/// Two nodes on one database.
struct fixture {
    explicit fixture(pg::database_settings settings = tests::fresh_settings())
        : a(settings), b(settings), stranger(settings) {
        a.must_know_itself();
        b.must_know_itself();
    }

    /// Whatever a case has done, each lock's row counts its places.
    ~fixture() {
        BOOST_TEST(sql("SELECT count(*) FROM {schema}.distributed_locks AS l WHERE places <> (SELECT count(*) FROM "
                       "{schema}.waiters AS w WHERE w.resource = l.resource)") == "0");
    }

    std::string sql(const std::string& text) { return tests::run_sql(a.settings(), text); }

    void lock_row() {
        stranger.run("BEGIN");
        stranger.run("SELECT 1 FROM {schema}.distributed_locks WHERE resource = 'r' FOR UPDATE");
    }

    /// What a node does that lets somebody stand, with the row locked already.
    void register_waiter() {
        stranger.run("INSERT INTO {schema}.nodes VALUES (999, clock_timestamp() + interval '1 h')");
        stranger.run(
            "INSERT INTO {schema}.waiters (resource, place, owner, node, attachment, ttl_seconds) VALUES ('r', "
            "nextval({places}), 'walter', 999, nextval({attachments}), 30)");
        stranger.run("UPDATE {schema}.distributed_locks SET places = places + 1 WHERE resource = 'r'");
    }

    std::string row(const std::string& columns) {
        return sql("SELECT " + columns + " FROM {schema}.distributed_locks WHERE resource = 'r'");
    }

    std::string places() {
        return sql("SELECT coalesce(string_agg(owner, ',' ORDER BY place), '') FROM {schema}.waiters");
    }

    /// Lets the present lease or offer end now.
    void end_lease() {
        sql("UPDATE {schema}.distributed_locks SET expires_at = clock_timestamp() WHERE resource = 'r'");
    }

    tests::node_database a, b;
    tests::stranger stranger;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(pg_queue)

BOOST_AUTO_TEST_CASE(a_release_offers_the_lock_to_the_first_in_line_who_confirms_it) {
    fixture f;
    const auto held = f.a.must_acquire("r", "holder", 30);
    const auto first = f.b.must_stand("r", "first");
    const auto second = f.a.must_end(f.a.start_stand("r", "second"));
    BOOST_TEST(as<domain::queue_standing>(second.answer).position == 2u);
    BOOST_TEST(as<domain::queue_standing>(second.answer).ends_in.count() > 25'000);

    const auto refused = f.a.must_end(f.a.start_release("r", "holder"));
    BOOST_TEST((refused == release_result::awaited));
    const auto released = f.a.must_end(f.a.start_queue_release("r", "holder"));
    BOOST_TEST((released.result == release_result::released));
    BOOST_REQUIRE(released.wakes.size() == 1u);
    BOOST_TEST((released.wakes[0] == domain::wake{f.b.must_know_itself(), first.number()}));
    const auto offered = f.row("fencing_token || ' ' || owner || ' ' || offered_place");

    const auto lock = f.b.must_claim(first, "first", 7);
    BOOST_TEST(offered == std::to_string(lock.fencing_token().number()) + " first " + std::to_string(first.number()));
    BOOST_TEST((lock.fencing_token() > held.fencing_token()));
    BOOST_TEST((lock.expires_at() - lock.acquired_at() == 7s));
    BOOST_TEST(f.places() == "second");
    BOOST_TEST(f.row("owner || ' ' || places || ' ' || (in_delivery IS NOT NULL) || ' ' || (offered_place IS NULL)") ==
               "first 1 true true");
}

BOOST_AUTO_TEST_CASE(the_waiters_own_node_grants_the_lock_at_once) {
    fixture f;
    const auto held = f.a.must_acquire("r", "holder", 30);
    const auto first = f.a.must_stand("r", "first");
    const auto second = f.b.must_stand("r", "second");

    const auto released = f.a.must_end(f.a.start_queue_release("r", "holder", {}, f.a.must_know_itself()));
    BOOST_TEST((released.result == release_result::released));
    BOOST_TEST(released.wakes.empty());
    BOOST_REQUIRE(released.handed.has_value());
    const auto& handed = *released.handed;
    BOOST_TEST(handed.place_number == first.number());
    BOOST_TEST(handed.attachment == first.attachment());
    BOOST_TEST(handed.lock.owner().text() == "first");
    BOOST_TEST((handed.lock.fencing_token() > held.fencing_token()));
    BOOST_TEST((handed.lock.expires_at() - handed.lock.acquired_at() == 30s));
    BOOST_TEST(f.places() == "second");
    // Should the answer get lost, the place's own claim finds the same grant, and nobody else's does.
    const domain::place other(first.resource(), first.number(), first.attachment() + 1'000);
    BOOST_TEST(std::holds_alternative<domain::place_gone>(f.a.must_end(f.a.start_claim(other, "first", 30))));
    const auto again = f.a.must_claim(first, "first", 30);
    BOOST_TEST((again.fencing_token() == handed.lock.fencing_token()));
    // Now it has been answered: it is not given back any more.
    BOOST_TEST((f.a.must_end(f.a.start_queue_release("r", "first", again.fencing_token())).result ==
                release_result::forbidden));

    // The next one stands elsewhere: it is offered the lock.
    const auto offered = f.a.must_end(f.a.start_queue_release("r", "first", {}, f.a.must_know_itself()));
    BOOST_TEST(!offered.handed.has_value());
    BOOST_REQUIRE(offered.wakes.size() == 1u);
    BOOST_TEST(offered.wakes[0].place_number == second.number());
}

BOOST_AUTO_TEST_CASE(an_expiry_is_granted_at_once_by_the_waiters_own_node_and_can_be_given_back) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    const auto first = f.a.must_stand("r", "first");
    f.b.must_stand("r", "second");
    f.end_lease();
    const auto ended = f.a.must_end(f.a.start_hand_over("r", f.a.must_know_itself()));
    BOOST_REQUIRE(ended.handed.has_value());
    BOOST_TEST(ended.handed->place_number == first.number());
    BOOST_REQUIRE(ended.ends_in.has_value());
    BOOST_TEST((*ended.ends_in > 28s));
    const auto given_back =
        f.a.must_end(f.a.start_queue_release("r", "first", ended.handed->lock.fencing_token(), f.a.must_know_itself()));
    BOOST_TEST((given_back.result == release_result::released));
    BOOST_TEST(given_back.wakes.size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_expiry_is_handed_over_once) {
    fixture f;
    f.a.must_acquire("r", "holder", 1);
    const auto first = f.b.must_stand("r", "first");
    f.b.must_stand("r", "second");
    const auto early = f.a.must_end(f.a.start_hand_over("r"));
    BOOST_REQUIRE(early.ends_in);
    BOOST_TEST(early.wakes.empty());
    f.a.run_for(*early.ends_in + 1ms);

    const auto by_a = f.a.start_hand_over("r");
    const auto by_b = f.b.start_hand_over("r");
    const auto one = f.a.must_end(by_a);
    const auto other = f.b.must_end(by_b);
    BOOST_TEST(one.wakes.size() + other.wakes.size() == 1u);
    BOOST_TEST((concerns(one.wakes, first) || concerns(other.wakes, first)));
    BOOST_TEST(one.ends_in->count() > 1'000);
    BOOST_TEST(other.ends_in->count() > 1'000);
}

BOOST_AUTO_TEST_CASE(who_asks_without_waiting_does_not_overtake) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    const auto first = f.b.must_stand("r", "first");
    f.end_lease();
    const auto fast = f.a.must_end(f.a.start_acquire("r", "hasty"));
    BOOST_TEST((fast.result() == acquire_result::awaited));
    const auto asked = f.a.must_end(f.a.start_stand("r", "hasty", 30, false));
    BOOST_TEST(as<domain::queue_refusal>(asked.answer).retry_after.count() > 1'000);
    BOOST_TEST(concerns(asked.wakes, first));
    BOOST_TEST(f.places() == "first");
    // What is offered is held by another, for everybody else.
    BOOST_TEST((f.a.must_end(f.a.start_acquire("r", "hasty")).result() == acquire_result::held));
}

BOOST_AUTO_TEST_CASE(nobody_waits_any_more_then_the_fast_statements_serve_again) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    f.b.must_stand("r", "first");
    BOOST_TEST(f.row("places") == "1");
    BOOST_TEST((f.b.must_end(f.b.start_leave("r", "first")).result == domain::leave_result::left));
    BOOST_TEST((f.b.must_end(f.b.start_leave("r", "first")).result == domain::leave_result::not_found));
    BOOST_TEST(f.row("places") == "0");
    BOOST_TEST((f.a.must_end(f.a.start_release("r", "holder")) == release_result::released));
    f.b.must_acquire("r", "other", 30);
}

BOOST_AUTO_TEST_CASE(the_holder_may_acquire_and_renew_again_while_others_wait) {
    fixture f;
    const auto held = f.a.must_acquire("r", "holder", 30);
    const auto first = f.b.must_stand("r", "first");
    const auto again = f.a.must_end(f.a.start_acquire("r", "holder", 60));
    BOOST_REQUIRE(again.result() == acquire_result::granted);
    BOOST_TEST(again.is_awaited());
    BOOST_TEST((again.grant().fencing_token() > held.fencing_token()));
    f.sql("UPDATE {schema}.distributed_locks SET in_delivery = 1");
    const auto renewed = f.a.must_end(f.a.start_renew("r", "holder"));
    BOOST_TEST(renewed.is_awaited());
    BOOST_TEST(f.row("in_delivery IS NULL") == "t");  // Who renews has had its answer.
    const auto stood = f.a.must_end(f.a.start_stand("r", "holder"));
    as<domain::queue_grant>(stood.answer);
    BOOST_TEST(concerns(stood.wakes, first));
}

BOOST_AUTO_TEST_CASE(an_offer_is_no_lock_of_its_owner_yet) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    const auto first = f.b.must_stand("r", "first");
    f.a.must_end(f.a.start_queue_release("r", "holder"));

    BOOST_TEST((f.a.must_end(f.a.start_renew("r", "first")).result() == domain::renew_result::not_found));
    BOOST_TEST((f.a.must_end(f.a.start_renew("r", "other")).result() == domain::renew_result::forbidden));
    BOOST_TEST((f.a.must_end(f.a.start_acquire("r", "first")).result() == acquire_result::awaited));
    BOOST_TEST((f.a.must_end(f.a.start_queue_release("r", "first")).result == release_result::not_found));
    BOOST_TEST((f.a.must_end(f.a.start_queue_release("r", "other")).result == release_result::forbidden));
    f.b.must_claim(first, "first");
}

BOOST_AUTO_TEST_CASE(a_resource_that_nobody_ever_held_is_granted_to_who_stands) {
    fixture f;
    const auto outcome = f.a.must_end(f.a.start_stand("r", "first", 9));
    BOOST_TEST((as<domain::queue_grant>(outcome.answer).lock.expires_in() > 8s));
    BOOST_TEST(f.row("places || ' ' || (in_delivery IS NOT NULL)") == "0 true");
    BOOST_TEST(f.a.must_end(f.a.start_hand_over("nothing")).wakes.empty());
}

BOOST_AUTO_TEST_CASE(places_are_bounded_kept_ones_counted) {
    auto settings = tests::fresh_settings();
    settings.places_per_resource_max = 2;
    fixture f(settings);
    f.a.must_acquire("r", "holder", 30);
    const auto first = f.a.must_stand("r", "first");
    f.a.must_stand("r", "second");
    f.a.must_end(f.a.start_withdraw(first));
    as<domain::queue_full>(f.a.must_end(f.a.start_stand("r", "third")).answer);
    const auto again = f.a.must_stand("r", "first");  // has its place
    BOOST_TEST(again.number() == first.number());
    f.a.must_end(f.a.start_withdraw(again));
    f.sql("UPDATE {schema}.waiters SET kept_until = clock_timestamp() WHERE kept_until IS NOT NULL");
    f.a.must_stand("r", "third");
    BOOST_TEST(f.places().find("third") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(commands_on_one_line_share_a_batch_and_keep_their_order) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    std::vector<std::shared_ptr<tests::pending<domain::stand_outcome>>> stands;
    f.lock_row();  // so that they pile up
    for (int each = 0; each < 50; ++each)
        stands.push_back(f.a.start_stand("r", "o" + std::to_string(each)));
    f.a.run_for(50ms);
    f.stranger.run("COMMIT");
    std::int64_t last = 0;
    for (std::size_t each = 0; each < stands.size(); ++each) {
        const auto outcome = f.a.must_end(stands[each]);
        const auto& standing = as<domain::queue_standing>(outcome.answer);
        BOOST_TEST(standing.place.number() > last);
        BOOST_TEST(standing.position == each + 1);
        last = standing.place.number();
    }
}

// ---- Snapshots: what was committed while a command waited for the row

BOOST_AUTO_TEST_CASE(a_release_sees_the_waiter_who_came_while_it_waited_for_the_row) {
    for (const bool fast : {true, false}) {
        fixture f(patient_settings());
        f.a.must_acquire("r", "holder", 30);
        f.lock_row();
        const auto fast_release = fast ? f.a.start_release("r", "holder") : nullptr;
        const auto queue_release = fast ? nullptr : f.a.start_queue_release("r", "holder");
        f.a.run_for(200ms);
        BOOST_TEST(!(fast ? fast_release->ended() : queue_release->ended()));
        f.register_waiter();
        f.stranger.run("COMMIT");

        if (fast) {
            BOOST_TEST((f.a.must_end(fast_release) == release_result::awaited));
            BOOST_TEST(f.row("owner") == "holder");
        } else {
            const auto released = f.a.must_end(queue_release);
            BOOST_TEST((released.result == release_result::released));
            BOOST_TEST(released.wakes.size() == 1u);
            BOOST_TEST(f.row("owner") == "walter");
        }
    }
}

BOOST_AUTO_TEST_CASE(an_acquire_does_not_overtake_the_waiter_who_came_while_it_waited_for_the_row) {
    fixture f(patient_settings());
    f.a.must_acquire("r", "holder", 30);
    f.end_lease();
    f.lock_row();
    const auto acquire = f.a.start_acquire("r", "hasty");
    f.a.run_for(200ms);
    BOOST_TEST(!acquire->ended());
    f.register_waiter();
    f.stranger.run("COMMIT");
    BOOST_TEST((f.a.must_end(acquire).result() == acquire_result::awaited));
}

BOOST_AUTO_TEST_CASE(an_acquire_does_not_overtake_the_waiter_of_a_row_that_came_into_being_meanwhile) {
    fixture f(patient_settings());
    f.stranger.run("BEGIN");
    f.stranger.run(
        "INSERT INTO {schema}.distributed_locks (resource, owner, acquired_at, expires_at, fencing_token) VALUES "
        "('r', 'rival', clock_timestamp(), clock_timestamp(), nextval({fencing_tokens}))");
    const auto acquire = f.a.start_acquire("r", "hasty");
    f.a.run_for(200ms);
    BOOST_TEST(!acquire->ended());
    f.register_waiter();
    f.stranger.run("COMMIT");
    BOOST_TEST((f.a.must_end(acquire).result() == acquire_result::awaited));
    BOOST_TEST(f.row("owner") == "rival");
}

BOOST_AUTO_TEST_CASE(who_stands_sees_the_release_that_was_committed_while_it_waited_for_the_row) {
    fixture f(patient_settings());
    f.a.must_acquire("r", "holder", 30);
    f.lock_row();
    const auto stand = f.a.start_stand("r", "first");
    f.a.run_for(200ms);
    BOOST_TEST(!stand->ended());
    f.stranger.run("UPDATE {schema}.distributed_locks SET released = true, expires_at = clock_timestamp()");
    f.stranger.run("COMMIT");
    as<domain::queue_grant>(f.a.must_end(stand).answer);
}

BOOST_AUTO_TEST_CASE(releases_and_registrations_that_cross_leave_nobody_beside_a_free_lock) {
    fixture f;
    constexpr int locks = 30;
    const auto name = [](int number) { return "r" + std::to_string(number); };
    for (int round = 0; round < 10; ++round) {
        for (int each = 0; each < locks; ++each)
            BOOST_REQUIRE(f.a.must_end(f.a.start_stand(name(each), "holder", 30, false)).answer.index() == 0u);
        std::vector<std::shared_ptr<tests::pending<domain::queue_release_outcome>>> releases;
        std::vector<std::shared_ptr<tests::pending<domain::stand_outcome>>> stands;
        for (int each = 0; each < locks; ++each) {
            releases.push_back(f.a.start_queue_release(name(each), "holder"));
            stands.push_back(f.b.start_stand(name(locks - 1 - each), "waiter"));
        }
        for (const auto& each : releases)
            BOOST_TEST((f.a.must_end(each).result == release_result::released));
        for (const auto& each : stands)  // granted at once, or offered by the release that came after
            BOOST_TEST(f.b.must_end(each).answer.index() <= 1u);
        BOOST_TEST(f.sql("SELECT count(*) FROM {schema}.distributed_locks WHERE released OR owner <> 'waiter'") == "0");
        f.sql("DELETE FROM {schema}.waiters");
        f.sql("UPDATE {schema}.distributed_locks SET released = true, places = 0, offered_place = NULL");
    }
}

BOOST_AUTO_TEST_CASE(a_count_that_is_too_high_is_set_right_by_the_next_who_asks) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    f.sql("UPDATE {schema}.distributed_locks SET places = 7 WHERE resource = 'r'");
    BOOST_TEST((f.a.must_end(f.a.start_release("r", "holder")) == release_result::awaited));
    BOOST_TEST((f.a.must_end(f.a.start_queue_release("r", "holder")).result == release_result::released));
    BOOST_TEST(f.row("places") == "0");
    f.b.must_acquire("r", "other", 30);
}

BOOST_AUTO_TEST_CASE(batches_in_opposite_orders_do_not_deadlock) {
    fixture f;
    constexpr int locks = 20;
    const pg::query_texts texts(f.a.settings().schema);
    const auto node = f.a.must_know_itself();
    std::atomic<int> deadlocks{0};
    const auto work = [&](const std::string& who, bool backwards) {
        pg::socket_watch watch;
        pg::connection session(f.a.settings(), texts, watch);
        session.prepare({pg::query::queue});
        for (int round = 0; round < 100; ++round) {
            pg::queue_parameters parameters;
            for (int each = 0; each < locks; ++each) {
                const auto name = tests::resource("r" + std::to_string(backwards ? locks - 1 - each : each));
                domain::acquire_command ask(name, tests::owner(who), tests::seconds(30));
                const domain::queue_release_command release({name, tests::owner(who)}, false);
                // One lets go while the other registers, and the other way round.
                if (backwards == (round % 2 == 0))
                    parameters.add(release, 9'000'000'000'000'000);
                else
                    parameters.add(domain::stand_command(ask, node), 9'000'000'000'000'000);
            }
            try {
                session.run(pg::query::queue, parameters.all(1'000, false, "3000"));
            } catch (const pg::statement_error& error) {
                BOOST_TEST(error.sqlstate() == "40P01", error.what());
                ++deadlocks;
            }
        }
    };
    std::thread other([&] { work("bob", true); });
    work("alice", false);
    other.join();
    BOOST_TEST(deadlocks.load() == 0);
}

// ---- Who is gone

BOOST_AUTO_TEST_CASE(the_offer_to_a_waiter_of_a_node_that_died_just_before_passes_on) {
    const auto settings = tests::fresh_settings();
    auto dying = std::make_unique<tests::node_database>(settings);
    tests::node_database b(settings);
    b.must_acquire("r", "holder", 30);
    const auto first = dying->must_stand("r", "first");
    const auto second = b.must_stand("r", "second");
    dying.reset();
    const auto died = steady_clock::now();

    const auto released = b.must_end(b.start_queue_release("r", "holder"));
    BOOST_TEST(concerns(released.wakes, first));
    const auto offered = b.must_end(b.start_hand_over("r"));
    BOOST_REQUIRE(offered.ends_in);
    BOOST_TEST(offered.ends_in->count() > 1'500);
    b.run_for(*offered.ends_in + 1ms);
    const auto passed_on = b.must_end(b.start_hand_over("r"));
    BOOST_TEST(concerns(passed_on.wakes, second));
    b.must_claim(second, "second");
    BOOST_TEST((steady_clock::now() - died < 4s));
}

BOOST_AUTO_TEST_CASE(a_node_that_lets_an_offer_pass_in_silence_gets_no_second_one) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    f.a.must_stand("r", "first");
    f.a.must_stand("r", "second");
    const auto third = f.b.must_stand("r", "third");
    f.sql("INSERT INTO {schema}.nodes VALUES (999, clock_timestamp() - interval '0.9 s')");
    f.sql("UPDATE {schema}.waiters SET node = 999 WHERE owner <> 'third'");
    f.b.must_end(f.b.start_queue_release("r", "holder"));
    BOOST_TEST(f.row("owner") == "first");
    f.b.run_for(2'001ms);
    const auto passed_on = f.b.must_end(f.b.start_hand_over("r"));
    BOOST_TEST(concerns(passed_on.wakes, third));
    f.b.must_claim(third, "third");
    BOOST_TEST(f.places() == "first,second");
}

BOOST_AUTO_TEST_CASE(waiters_of_nodes_that_are_dead_for_longer_are_passed_over_at_once) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    const auto first = f.a.must_stand("r", "first");
    const auto second = f.b.must_stand("r", "second");
    f.sql("UPDATE {schema}.waiters SET node = 999 WHERE owner = 'first'");
    f.sql("INSERT INTO {schema}.nodes VALUES (999, clock_timestamp() - interval '3.1 s')");
    const auto released = f.b.must_end(f.b.start_queue_release("r", "holder"));
    BOOST_TEST(concerns(released.wakes, second));
    BOOST_TEST(f.places() == "first,second");  // It keeps its order for 8 s after the last beat.
    BOOST_TEST(f.a.must_stand("r", "first").number() == first.number());
}

BOOST_AUTO_TEST_CASE(what_a_dead_node_left_is_no_place_after_a_while) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    const auto first = f.a.must_stand("r", "first");
    f.sql("UPDATE {schema}.waiters SET node = 999");
    f.sql("INSERT INTO {schema}.nodes VALUES (999, clock_timestamp() - interval '8.1 s')");
    BOOST_TEST(f.a.must_stand("r", "first").number() > first.number());
}

BOOST_AUTO_TEST_CASE(a_claim_after_the_offer_has_passed_on_is_refused) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    const auto first = f.a.must_stand("r", "first");
    const auto second = f.b.must_stand("r", "second");
    f.b.must_end(f.b.start_queue_release("r", "holder"));
    f.end_lease();  // as if its node had been stopped for so long

    as<domain::not_offered>(f.a.must_end(f.a.start_claim(first, "first")));  // ended, though nobody has noticed
    f.b.must_end(f.b.start_hand_over("r"));
    BOOST_TEST(as<domain::not_offered>(f.a.must_end(f.a.start_claim(first, "first"))).is_kept);
    f.b.must_claim(second, "second");
    BOOST_TEST(as<domain::not_offered>(f.a.must_end(f.a.start_claim(first, "first"))).is_kept);
    BOOST_TEST(f.row("owner") == "second");
    // It may stand again, where it was.
    BOOST_TEST(f.a.must_stand("r", "first").number() == first.number());
}

BOOST_AUTO_TEST_CASE(a_withdrawn_waiter_s_offer_passes_on_and_its_place_is_kept) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    const auto first = f.a.must_stand("r", "first");
    const auto second = f.b.must_stand("r", "second");
    f.b.must_end(f.b.start_queue_release("r", "holder"));
    const auto withdrawn = f.a.must_end(f.a.start_withdraw(first));
    BOOST_TEST(as<domain::place_kept>(withdrawn.answer).position == 1u);
    BOOST_TEST(concerns(withdrawn.wakes, second));
    BOOST_TEST(as<domain::not_offered>(f.a.must_end(f.a.start_claim(first, "first"))).is_kept);
    f.b.must_claim(second, "second");
    // A kept place is never granted, and holds nobody back.
    const auto released = f.b.must_end(f.b.start_queue_release("r", "second"));
    BOOST_TEST(released.wakes.empty());
    const auto again = f.a.must_end(f.a.start_stand("r", "hasty"));
    as<domain::queue_grant>(again.answer);
}

BOOST_AUTO_TEST_CASE(a_kept_place_is_taken_over_with_its_number_and_its_old_request_can_do_nothing) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    const auto old = f.a.must_stand("r", "first");
    f.a.must_stand("r", "second");
    const auto taken_over = f.b.must_end(f.b.start_stand("r", "first"));
    const auto& standing = as<domain::queue_standing>(taken_over.answer);
    BOOST_TEST(standing.place.number() == old.number());
    BOOST_TEST(standing.place.attachment() != old.attachment());
    BOOST_TEST(standing.position == 1u);
    BOOST_REQUIRE(taken_over.wakes.size() == 1u);
    BOOST_TEST((taken_over.wakes[0] == domain::wake{f.a.must_know_itself(), old.number()}));

    as<domain::place_gone>(f.a.must_end(f.a.start_withdraw(old)).answer);
    as<domain::place_gone>(f.a.must_end(f.a.start_claim(old, "first")));
    const auto released = f.a.must_end(f.a.start_queue_release("r", "holder"));
    BOOST_REQUIRE(released.wakes.size() == 1u);
    BOOST_TEST((released.wakes[0] == domain::wake{f.b.must_know_itself(), old.number()}));
    as<domain::place_gone>(f.a.must_end(f.a.start_claim(old, "first")));
    f.b.must_claim(standing.place, "first");
}

BOOST_AUTO_TEST_CASE(an_owner_who_asks_again_while_its_place_is_offered_gets_the_lock) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    const auto old = f.a.must_stand("r", "first");
    f.a.must_end(f.a.start_queue_release("r", "holder"));
    const auto token = f.row("fencing_token");
    const auto again = f.b.must_end(f.b.start_stand("r", "first"));
    BOOST_TEST(std::to_string(as<domain::queue_grant>(again.answer).lock.fencing_token().number()) == token);
    BOOST_TEST(concerns(again.wakes, old));
    as<domain::place_gone>(f.a.must_end(f.a.start_claim(old, "first")));
}

BOOST_AUTO_TEST_CASE(asking_again_at_the_very_end_of_a_kept_place_leaves_exactly_one_place) {
    fixture f;
    f.a.must_acquire("r", "holder", 3'600);
    std::mt19937 random(4711);
    int kept = 0, anew = 0;
    auto place = f.a.must_stand("r", "first");
    for (int round = 0; round < 120; ++round) {
        f.a.must_end(f.a.start_withdraw(place));
        f.a.must_stand("r", "second");
        // The end of the keeping comes somewhere around the moment of the next commands.
        f.sql("UPDATE {schema}.waiters SET kept_until = clock_timestamp() + interval '" +
              std::to_string(random() % 60) + " ms' WHERE owner = 'first'");
        f.b.run_for(std::chrono::milliseconds(random() % 20));
        const auto stand = f.b.start_stand("r", "first");
        const auto rival = f.a.start_withdraw(place);  // the old request's late goodbye
        const auto outcome = f.b.must_end(stand);
        f.a.must_end(rival);
        const auto& standing = as<domain::queue_standing>(outcome.answer);
        ++(standing.place.number() == place.number() ? kept : anew);
        BOOST_REQUIRE(f.sql("SELECT count(*) || ' ' || min(place) || ' ' || bool_and(kept_until IS NULL) FROM "
                            "{schema}.waiters WHERE owner = 'first'") ==
                      "1 " + std::to_string(standing.place.number()) + " true");
        place = standing.place;
    }
    BOOST_TEST_MESSAGE("kept " << kept << ", anew " << anew);
    BOOST_TEST(kept > 0);
    BOOST_TEST(anew > 0);
}

BOOST_AUTO_TEST_CASE(a_grant_is_given_back_unless_it_was_answered_again_under_its_key) {
    for (const bool replayed : {false, true}) {
        fixture f;
        f.a.must_acquire("r", "holder", 30);
        const auto first = f.a.must_stand("r", "first");
        f.a.must_stand("r", "second");
        f.a.must_end(f.a.start_queue_release("r", "holder"));
        const auto lock = f.a.must_claim(first, "first", 30, "key-1");
        if (replayed) {
            // On another node, where the client has asked again.
            domain::acquire_command ask(tests::resource("r"), tests::owner("first"), tests::seconds(30),
                                        tests::key("key-1"));
            const auto fast = f.b.acquire(ask);
            BOOST_REQUIRE(fast);
            BOOST_TEST((fast->result() == acquire_result::awaited));
            const auto repeated = f.b.must_end(f.b.start_stand("r", "first", 30, false, "key-1"));
            BOOST_TEST((as<domain::queue_grant>(repeated.answer).lock.fencing_token() == lock.fencing_token()));
            BOOST_TEST((f.b.acquire(ask)->result() == acquire_result::granted));
        }
        const auto given_back = f.a.must_end(f.a.start_queue_release("r", "first", lock.fencing_token()));
        BOOST_TEST((given_back.result == (replayed ? release_result::forbidden : release_result::released)));
        BOOST_TEST(f.row("owner") == (replayed ? "first" : "second"));
    }
}

BOOST_AUTO_TEST_CASE(only_the_grant_that_is_meant_is_given_back) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    const auto first = f.a.must_stand("r", "first");
    f.a.must_end(f.a.start_queue_release("r", "holder"));
    const auto lock = f.a.must_claim(first, "first");
    f.b.must_acquire("r", "first", 30);  // a new grant, answered elsewhere
    BOOST_TEST((f.a.must_end(f.a.start_queue_release("r", "first", lock.fencing_token())).result ==
                release_result::forbidden));
    BOOST_TEST(f.row("released || ' ' || (in_delivery IS NOT NULL)") == "false false");
}

// ---- Housekeeping

BOOST_AUTO_TEST_CASE(the_sweep_leaves_rows_that_are_waited_for) {
    auto settings = tests::fresh_settings();
    settings.sweep_after = 40s;
    settings.sweep_interval = 1s;
    fixture f(settings);
    f.a.must_acquire("r", "holder", 30);
    f.a.must_acquire("old", "holder", 30);
    const auto first = f.a.must_stand("r", "first");
    f.sql(
        "UPDATE {schema}.distributed_locks SET expires_at = now() - interval '1 h', acquired_at = now() - interval '2 "
        "h'");
    BOOST_TEST(f.a.run_until(5s, [&] { return f.sql("SELECT count(*) FROM {schema}.distributed_locks") == "1"; }));
    f.a.run_for(1'200ms);  // one more sweep
    const auto handed_over = f.a.must_end(f.a.start_hand_over("r"));
    BOOST_TEST(concerns(handed_over.wakes, first));
}

BOOST_AUTO_TEST_CASE(what_nobody_comes_by_is_tidied_up) {
    const auto settings = tests::fresh_settings();
    {
        fixture f(settings);
        f.a.must_acquire("r", "holder", 3'600);
        f.a.must_acquire("s", "holder", 3'600);
        f.a.must_stand("r", "first");
        f.a.must_end(f.a.start_withdraw(f.a.must_stand("s", "first")));
    }
    tests::run_sql(settings, "UPDATE {schema}.nodes SET beat_at = now() - interval '1 h'");
    tests::run_sql(settings, "UPDATE {schema}.waiters SET kept_until = now() - interval '1 h' WHERE resource = 's'");
    tests::node_database node(settings);  // tidies up as soon as it is there
    const auto left = [&] {
        return tests::run_sql(settings,
                              "SELECT (SELECT count(*) FROM {schema}.waiters) || ' ' || (SELECT count(*) FROM "
                              "{schema}.distributed_locks WHERE places <> 0) || ' ' || (SELECT count(*) FROM "
                              "{schema}.nodes)");
    };
    BOOST_TEST(node.run_until(15s, [&] { return left() == "0 0 1"; }), left());
}

BOOST_AUTO_TEST_CASE(commands_that_come_too_late_do_nothing) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    const auto first = f.a.must_stand("r", "first");
    const auto state = [&] { return f.sql("TABLE {schema}.distributed_locks; TABLE {schema}.waiters"); };
    const auto offered_and_expiring = [&](const std::string& kind) {
        return f.sql("SELECT out_verdict FROM {schema}.run_queue(ARRAY['" + kind +
                     "'], ARRAY['r'], ARRAY['holder'], ARRAY[30::bigint], ARRAY[''], ARRAY[1::bigint], ARRAY[" +
                     std::to_string(first.number()) + "::bigint], ARRAY[" + std::to_string(first.attachment()) +
                     "::bigint], ARRAY[-1::bigint], ARRAY[1000000::bigint], 1000, true, '50ms')");
    };
    const auto before = state();
    for (const char* kind : {"stand", "claim", "withdraw", "leave", "hand_over", "release", "give_back"})
        BOOST_TEST(offered_and_expiring(kind) == "late", kind);
    BOOST_TEST(state() == before);
}

// ---- What a node is told

BOOST_AUTO_TEST_CASE(a_survey_tells_where_a_node_s_waiters_stand) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    f.a.must_acquire("s", "holder", 30);
    const auto first = f.a.must_stand("r", "first");
    const auto kept = f.a.must_stand("r", "kept");
    const auto elsewhere = f.b.must_stand("r", "elsewhere");
    const auto other = f.a.must_stand("s", "first");
    f.a.must_end(f.a.start_withdraw(kept));
    f.b.must_end(f.b.start_queue_release("r", "holder"));

    const auto until = f.a.surveys() + 2;
    BOOST_REQUIRE(f.a.run_until(5s, [&] { return f.a.surveys() >= until; }));
    std::map<std::int64_t, const domain::surveyed_place*> found;
    for (const auto& each : f.a.surveyed())
        found.emplace(each.place.number(), &each);
    BOOST_REQUIRE(found.size() == 2u);
    BOOST_REQUIRE(found.count(first.number()) == 1u);
    BOOST_REQUIRE(found.count(other.number()) == 1u);
    BOOST_TEST((found[first.number()]->place == first));
    BOOST_TEST(found[first.number()]->offered);
    BOOST_TEST((found[first.number()]->ends_in <= 2s));
    BOOST_TEST(!found[other.number()]->offered);
    BOOST_TEST((found[other.number()]->ends_in > 20s));
}

BOOST_AUTO_TEST_CASE(other_nodes_hear_what_is_announced) {
    fixture f;
    f.a.must_acquire("r", "holder", 30);
    const auto first = f.b.must_stand("r", "first");
    const auto second = f.b.must_stand("r", "second");
    BOOST_REQUIRE(f.b.run_until(5s, [&] { return f.b.journal().count("listening_to_nodes") == 1u; }));

    std::vector<domain::wake> wakes{{f.b.must_know_itself(), second.number()}, {f.a.must_know_itself(), 1}};
    f.a.queue().announce(wakes);
    BOOST_TEST(f.a.run_until(2s, [&] {
        f.b.run_for(5ms);
        return !f.b.woken().empty();
    }));
    BOOST_TEST(f.b.woken() == std::vector<std::int64_t>{second.number()});
    f.a.queue().announce_moved(tests::resource("r"));
    BOOST_TEST(f.a.run_until(2s, [&] {
        f.b.run_for(5ms);
        return f.b.woken().size() == 2u;
    }));
    BOOST_TEST(f.b.woken().back() == first.number());

    // Far more than one notification can carry.
    wakes.clear();
    for (std::int64_t each = 1; each <= 3'000; ++each)
        wakes.push_back({f.b.must_know_itself(), 1'000'000'000'000 + each});
    f.a.queue().announce(wakes);
    BOOST_TEST(f.a.run_until(2s, [&] {
        f.b.run_for(5ms);
        return f.b.woken().size() == 3'002u;
    }));
}

BOOST_AUTO_TEST_CASE(a_listener_whose_session_was_ended_listens_again_and_looks_at_once) {
    fixture f;
    BOOST_REQUIRE(f.b.run_until(5s, [&] { return f.b.journal().count("listening_to_nodes") == 1u; }));
    const auto lost = [&] { return f.b.journal().count("listener_lost"); };
    for (int round = 0; round < 3; ++round) {
        const auto before = f.b.surveys();
        f.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'");
        BOOST_TEST(f.b.run_until(2s, [&] { return lost() == static_cast<std::size_t>(round + 1); }));
        BOOST_TEST(f.b.run_until(
            2s, [&] { return f.b.journal().count("listening_to_nodes") == static_cast<std::size_t>(round + 2); }));
        BOOST_TEST(f.b.run_until(300ms, [&] { return f.b.surveys() > before; }));
    }
    std::vector<domain::wake> wakes{{f.b.must_know_itself(), 4711}};
    f.a.queue().announce(wakes);
    BOOST_TEST(f.a.run_until(2s, [&] {
        f.b.run_for(5ms);
        return !f.b.woken().empty();
    }));
}

BOOST_AUTO_TEST_CASE(a_listener_that_hears_nothing_is_noticed_by_its_own_beats) {
    auto settings = tests::fresh_settings();
    tests::tcp_gate gate(tests::postgres_cluster::shared().port());
    settings.listen_url = "postgresql://holdfast@127.0.0.1:" + std::to_string(gate.port()) + "/postgres";
    tests::node_database node(settings);
    BOOST_REQUIRE(node.run_until(5s, [&] { return node.journal().count("listening_to_nodes") == 1u; }));
    node.run_for(3'500ms);
    BOOST_TEST(node.journal().count("listener_lost") == 0u);
    gate.stall(tests::tcp_gate::direction::to_client);
    BOOST_TEST(node.run_until(4s, [&] { return node.journal().count("listener_lost") == 1u; }));
    gate.pass();
    BOOST_TEST(node.run_until(5s, [&] { return node.journal().count("listening_to_nodes") == 2u; }));
    BOOST_TEST(node.database().ready());
}

BOOST_AUTO_TEST_CASE(a_node_that_cannot_say_that_it_lives_does_not_take_itself_for_living) {
    fixture f;
    const auto self = f.a.must_know_itself();
    f.stranger.run("BEGIN");
    f.stranger.run("LOCK TABLE {schema}.nodes IN EXCLUSIVE MODE");
    BOOST_TEST(f.a.run_until(4s, [&] { return !f.a.queue().node(); }));
    f.stranger.run("COMMIT");
    BOOST_TEST(f.a.run_until(4s, [&] { return f.a.queue().node() == self; }));
}

BOOST_AUTO_TEST_SUITE_END()
