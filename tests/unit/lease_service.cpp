#include "holdfast/service/lease_service.hpp"

#include "holdfast/store/memory_store.hpp"

#include "support/lease_store_conformance.hpp"
#include "support/scripted_queue.hpp"
#include "support/wait_for.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <memory>
#include <variant>

namespace {

using namespace holdfast;
using namespace holdfast::domain;
using namespace std::chrono_literals;
using tests::owner;
using tests::queue_call;
using tests::resource;
using tests::seconds;

/// A node's service over a memory whose clock stands still, and another node beside it.
struct fixture {
    using acquire_result = std::optional<result<service::acquire_answer>>;

    acquire_command asking(const std::string& who, const std::string& with = "") {
        std::optional<idempotency_key> key;
        if (!with.empty()) key = tests::key(with);
        return {resource("r"), owner(who), seconds(30), key};
    }
    service::acquire_answer acquire(const std::string& who, std::chrono::seconds wait = 0s,
                                    const std::string& with = "") {
        auto answer = tests::wait_for(context, service.acquire(asking(who, with), wait));
        BOOST_REQUIRE(answer);
        return *std::move(answer);
    }
    template <class Answer>
    Answer must_be(service::acquire_answer answer) {
        BOOST_REQUIRE(std::holds_alternative<Answer>(answer));
        return std::get<Answer>(std::move(answer));
    }
    std::shared_ptr<acquire_result> start(const std::string& who) {
        auto answer = std::make_shared<acquire_result>();
        boost::asio::co_spawn(context, tests::keep_answer(service.acquire(asking(who), 20s), *answer),
                              [answer](std::exception_ptr fault) {
                                  if (fault) std::rethrow_exception(fault);
                              });
        run();
        return answer;
    }
    void run() {
        context.restart();
        context.poll();
    }
    release_result release(const std::string& who) {
        const auto answer = tests::wait_for(context, service.release({resource("r"), owner(who)}));
        BOOST_REQUIRE(answer);
        run();
        return *answer;
    }
    /// Somebody waits on the other node.
    void stand_there(const std::string& who) {
        stand_command command(asking(who), there->node());
        BOOST_REQUIRE(tests::wait_for(context, there->stand(std::move(command), {})));
        store::wait_queue::events events;
        events.woken = [this](std::vector<std::int64_t> places) { heard_there += places.size(); };
        there->listen(std::move(events));
    }

    boost::asio::io_context context{1};
    timestamp now{std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)};
    store::memory_store memory{[this] { return now; }};
    std::unique_ptr<store::memory_store> there = memory.another_node();
    tests::scripted_queue queue{context.get_executor(), memory};
    service::wait_registry registry{context.get_executor(), queue, 10, 5s};
    service::lease_service service{memory, queue, registry, 5s};
    std::size_t heard_there = 0;
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(lease_service, fixture)

BOOST_AUTO_TEST_CASE(without_waiting_nobody_asks_the_queue) {
    const auto grant = must_be<service::grant>(acquire("alice"));
    BOOST_TEST(!grant.waited.has_value());
    BOOST_TEST(!grant.undelivered);
    const auto refusal = must_be<service::refusal>(acquire("bob"));
    BOOST_TEST(refusal.retry_after.count() == 30'000);
    BOOST_TEST(!refusal.place.has_value());
    BOOST_TEST((release("alice") == release_result::released));
    BOOST_TEST(queue.sent(queue_call::stand) == 0u);
    BOOST_TEST(queue.sent(queue_call::release) == 0u);
}

BOOST_AUTO_TEST_CASE(who_would_wait_for_a_free_lock_has_waited_for_nothing) {
    const auto grant = must_be<service::grant>(acquire("alice", 20s));
    BOOST_REQUIRE(grant.waited.has_value());
    BOOST_TEST(grant.waited->count() == 0);
    BOOST_TEST(queue.sent(queue_call::stand) == 0u);
}

BOOST_AUTO_TEST_CASE(what_one_who_would_wait_did_not_receive_is_given_back_unless_it_was_told_again) {
    for (const char* with : {"", "k1"}) {
        must_be<service::grant>(acquire("alice", 20s, with)).undelivered();
        run();
        must_be<service::grant>(acquire("bob"));
        BOOST_TEST((release("bob") == release_result::released));
    }
    const auto grant = must_be<service::grant>(acquire("alice", 20s, "k1"));
    must_be<service::grant>(acquire("alice", 0s, "k1"));
    grant.undelivered();
    run();
    must_be<service::refusal>(acquire("bob"));
}

BOOST_AUTO_TEST_CASE(who_waits_for_a_held_lock_stands_in_line) {
    must_be<service::grant>(acquire("alice"));
    const auto bob = start("bob");
    BOOST_TEST(!bob->has_value());
    BOOST_TEST(registry.waiting() == 1u);
    BOOST_TEST((release("alice") == release_result::released));
    BOOST_TEST(queue.sent(queue_call::release) == 1u);
    BOOST_REQUIRE(bob->has_value());
    const auto grant = must_be<service::grant>(***bob);
    BOOST_TEST(grant.waited.has_value());
    BOOST_TEST(static_cast<bool>(grant.undelivered));
}

BOOST_AUTO_TEST_CASE(who_does_not_wait_does_not_overtake) {
    must_be<service::grant>(acquire("alice"));
    stand_there("bob");
    now += 30s;
    const auto refusal = must_be<service::refusal>(acquire("carol"));
    BOOST_TEST(refusal.retry_after.count() == 2'000);
    BOOST_TEST(queue.sent(queue_call::stand) == 1u);
    // It set the handover off, and bob's node hears of it.
    there->deliver();
    BOOST_TEST(heard_there == 1u);
}

BOOST_AUTO_TEST_CASE(where_only_kept_places_are_the_lock_is_granted) {
    must_be<service::grant>(acquire("alice"));
    stand_there("bob");
    there->beats(false);
    now += 30s;
    const auto grant = must_be<service::grant>(acquire("carol"));
    BOOST_TEST(!grant.waited.has_value());
    BOOST_TEST(!grant.undelivered);
}

BOOST_AUTO_TEST_CASE(an_end_that_moves_is_told_to_those_who_wait) {
    must_be<service::grant>(acquire("alice"));
    stand_there("bob");
    must_be<service::grant>(acquire("alice"));
    there->deliver();
    BOOST_TEST(heard_there == 1u);
    const auto renewed = tests::wait_for(context, service.renew({resource("r"), owner("alice"), seconds(60)}));
    BOOST_REQUIRE((renewed && renewed->result() == renew_result::renewed));
    there->deliver();
    BOOST_TEST(heard_there == 2u);
}

BOOST_AUTO_TEST_CASE(a_release_that_is_awaited_hands_over_or_is_refused) {
    must_be<service::grant>(acquire("alice"));
    stand_there("bob");
    BOOST_TEST((release("carol") == release_result::forbidden));
    BOOST_TEST((release("alice") == release_result::released));
    there->deliver();
    BOOST_TEST(heard_there == 1u);
    // Offered, not held.
    BOOST_TEST((release("bob") == release_result::not_found));
}

BOOST_AUTO_TEST_CASE(leaving_ends_the_waiting_request) {
    must_be<service::grant>(acquire("alice"));
    const auto bob = start("bob");
    const auto left = tests::wait_for(context, service.leave({resource("r"), owner("bob")}));
    BOOST_REQUIRE(left);
    BOOST_TEST((*left == leave_result::left));
    run();
    BOOST_REQUIRE((bob->has_value() && **bob));
    BOOST_TEST(!must_be<service::refusal>(***bob).place.has_value());
    const auto again = tests::wait_for(context, service.leave({resource("r"), owner("bob")}));
    BOOST_TEST((*again == leave_result::not_found));
}

BOOST_AUTO_TEST_CASE(failures_of_the_queue_are_told_as_they_are) {
    must_be<service::grant>(acquire("alice"));
    stand_there("bob");
    for (const errc why : {errc::unavailable, errc::overloaded, errc::outcome_unknown, errc::internal}) {
        queue.of(queue_call::release).fails = {why};
        const auto released = tests::wait_for(context, service.release({resource("r"), owner("alice")}));
        BOOST_TEST((!released && released.error() == why));
        queue.of(queue_call::leave).fails = {why};
        const auto left = tests::wait_for(context, service.leave({resource("r"), owner("bob")}));
        BOOST_TEST((!left && left.error() == why));
    }
    now += 30s;
    queue.of(queue_call::stand).fails = {errc::overloaded};
    const auto asked = tests::wait_for(context, service.acquire(asking("carol"), 0s));
    BOOST_TEST((!asked && asked.error() == errc::overloaded));
}

BOOST_AUTO_TEST_SUITE_END()
