#include "holdfast/service/wait_registry.hpp"

#include "holdfast/store/memory_store.hpp"

#include "support/lease_store_conformance.hpp"
#include "support/scripted_queue.hpp"
#include "support/wait_for.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>

#include <list>
#include <memory>
#include <variant>

namespace {

using namespace holdfast;
using namespace holdfast::domain;
using namespace std::chrono_literals;
using std::chrono::milliseconds;
using tests::key;
using tests::owner;
using tests::queue_call;
using tests::resource;
using tests::seconds;

/// The time of a case, by every clock in it: stands still until told otherwise.
struct told_time {
    std::chrono::steady_clock::time_point steady{std::chrono::hours(1'000)};
    timestamp database{std::chrono::sys_days(std::chrono::year(2026) / 1 / 1)};

    void pass(std::chrono::microseconds length) {
        steady += length;
        database += length;
    }
};

class told_alarm final : public service::alarm {
public:
    explicit told_alarm(const told_time& time) : time_(time) {}

    time_point now() const override { return time_.steady; }
    void set(time_point when, std::function<void()> ring) override {
        due_ = when;
        ring_ = std::move(ring);
    }
    void stop() override { due_.reset(); }

    std::optional<time_point> due() const { return due_; }
    bool ring_if_due() {
        if (!due_ || *due_ > time_.steady) return false;
        due_.reset();
        std::exchange(ring_, nullptr)();
        return true;
    }

private:
    const told_time& time_;
    std::optional<time_point> due_;
    std::function<void()> ring_;
};

/// A client that waits.
struct request {
    std::optional<result<service::acquire_answer>> answer;
    bool aborted = false;
    boost::asio::cancellation_signal hang_up;

    bool ended() const { return answer || aborted; }
    bool granted() const { return answer && *answer && std::holds_alternative<service::grant>(**answer); }
    bool refused() const { return answer && *answer && std::holds_alternative<service::refusal>(**answer); }
    bool failed_with(errc why) const { return answer && !*answer && answer->error() == why; }
    service::grant& grant() { return std::get<service::grant>(**answer); }
    const service::refusal& refusal() const { return std::get<service::refusal>(**answer); }
};
using request_ptr = std::shared_ptr<request>;

boost::asio::awaitable<void> carry_out(request_ptr request,
                                       boost::asio::awaitable<result<service::acquire_answer>> call) {
    co_await boost::asio::this_coro::reset_cancellation_state(boost::asio::enable_total_cancellation());
    try {
        request->answer.emplace(co_await std::move(call));
    } catch (const boost::system::system_error& error) {
        if (error.code() != boost::asio::error::operation_aborted) throw;
        request->aborted = true;
    }
}

struct node {
    node(boost::asio::io_context& context, store::memory_store& store, const told_time& time, std::size_t waiters_max)
        : store(store), queue(context.get_executor(), store) {
        auto told = std::make_unique<told_alarm>(time);
        alarm = told.get();
        registry.emplace(context.get_executor(), queue, waiters_max, 5s, std::move(told));
    }

    store::memory_store& store;
    tests::scripted_queue queue;
    told_alarm* alarm = nullptr;
    std::optional<service::wait_registry> registry;
};

/// Two nodes, one memory behind them, one I/O thread. Clients come with names; the resource is "r" unless told
/// otherwise.
struct world {
    explicit world(std::size_t waiters_max = 100)
        : there_store(here_store.another_node()),
          here(context, here_store, time, waiters_max),
          there(context, *there_store, time, waiters_max) {}

    /// Everything that goes on by itself, as long as no time passes.
    void run() {
        for (bool more = true; more;) {
            context.restart();
            more = context.poll() > 0;
            for (node* each : {&here, &there}) {
                more = each->store.deliver() || more;
                more = (each->registry && each->alarm->ring_if_due()) || more;
            }
        }
    }
    /// Time passes, with everything that happens in it.
    void pass(milliseconds length) {
        const auto end = time.steady + length;
        for (;;) {
            run();
            auto next = end;
            for (const node* each : {&here, &there})
                if (each->registry && each->alarm->due()) next = std::min(next, *each->alarm->due());
            if (next > time.steady)
                time.pass(std::chrono::duration_cast<std::chrono::microseconds>(next - time.steady));
            if (next == end) break;
        }
        run();
    }
    void survey() {
        run();
        here.store.survey(time.steady);
        there.store.survey(time.steady);
        run();
    }

    request_ptr start(node& at, const std::string& who, std::chrono::seconds wait = 20s,
                      const std::string& key_text = "", const std::string& name = "r") {
        auto begun = std::make_shared<request>();
        std::optional<idempotency_key> with;
        if (!key_text.empty()) with = key(key_text);
        acquire_command command(resource(name), owner(who), seconds(30), with);
        boost::asio::co_spawn(context, carry_out(begun, at.registry->wait(std::move(command), wait, time.steady)),
                              boost::asio::bind_cancellation_slot(begun->hang_up.slot(), [](std::exception_ptr fault) {
                                  if (fault) std::rethrow_exception(fault);
                              }));
        return begun;
    }
    request_ptr wait_at(node& at, const std::string& who, std::chrono::seconds wait = 20s,
                        const std::string& key_text = "") {
        auto begun = start(at, who, wait, key_text);
        run();
        return begun;
    }
    void hang_up(const request_ptr& whose,
                 boost::asio::cancellation_type type = boost::asio::cancellation_type::terminal) {
        whose->hang_up.emit(type);
    }

    lock hold(const std::string& who, std::int64_t ttl_seconds = 30, const std::string& name = "r") {
        acquire_command command(resource(name), owner(who), seconds(ttl_seconds));
        auto outcome = tests::wait_for(context, here_store.acquire(std::move(command), {}));
        BOOST_REQUIRE((outcome && outcome->result() == acquire_result::granted));
        return outcome->grant();
    }
    /// As lease_service does it on that node.
    void release(node& at, const std::string& who, const std::string& name = "r") {
        queue_release_command command(release_command(resource(name), owner(who)), false);
        auto outcome = tests::wait_for(context, at.store.release(std::move(command), {}));
        BOOST_REQUIRE((outcome && outcome->result == release_result::released));
        at.registry->spread(std::move(outcome->wakes));
        run();
    }
    /// The waiters' nodes hear nothing of it.
    void release_unheard(const std::string& who) {
        queue_release_command command(release_command(resource("r"), owner(who)), false);
        auto outcome = tests::wait_for(context, here_store.release(std::move(command), {}));
        BOOST_REQUIRE((outcome && outcome->result == release_result::released));
    }
    void renew(const std::string& who, std::int64_t ttl_seconds, bool heard = true) {
        renew_command command(resource("r"), owner(who), seconds(ttl_seconds));
        auto outcome = tests::wait_for(context, there_store->renew(std::move(command), {}));
        BOOST_REQUIRE((outcome && outcome->result() == renew_result::renewed && outcome->is_awaited()));
        if (heard) there_store->announce_moved(resource("r"));
        run();
    }
    leave_result leave(node& at, const std::string& who) {
        auto outcome = tests::wait_for(context, at.store.leave(leave_command(resource("r"), owner(who)), {}));
        BOOST_REQUIRE(outcome);
        at.registry->spread(std::move(outcome->wakes));
        run();
        return outcome->result;
    }
    /// As the queue says that it has granted the lock to the first place that ever was.
    handover handed_to(const std::string& who) const {
        const lock granted(resource("r"), owner(who), time.database, time.database + 30s, 30s,
                           *fencing_token::parse(1'000));
        return handover(1, 1, granted);
    }
    std::string holder(const std::string& name = "r") {
        auto outcome = tests::wait_for(context, here_store.look(look_command(resource(name)), {}));
        return outcome->result() == look_result::found ? outcome->lock().owner().text() : "";
    }

    told_time time;
    boost::asio::io_context context{1};
    store::memory_store here_store{[this] { return time.database; }};
    std::unique_ptr<store::memory_store> there_store;
    node here;
    node there;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(wait_registry)

// ---- Grants

BOOST_AUTO_TEST_CASE(a_free_lock_is_granted_at_once) {
    world world;
    const auto bob = world.wait_at(world.here, "bob");
    BOOST_REQUIRE(bob->granted());
    BOOST_TEST(bob->grant().waited->count() == 0);
    BOOST_TEST(bob->grant().lock.expires_in().count() == 30'000);
    BOOST_TEST(world.here.registry->waiting() == 0u);
}

BOOST_AUTO_TEST_CASE(a_waiter_is_granted_when_the_holder_releases) {
    world world;
    const lock held = world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    BOOST_TEST(world.here.registry->waiting() == 1u);
    world.pass(7'250ms);
    BOOST_TEST(!bob->ended());
    world.release(world.here, "alice");

    BOOST_REQUIRE(bob->granted());
    BOOST_TEST(bob->grant().waited->count() == 7'250);
    BOOST_TEST((bob->grant().lock.fencing_token() > held.fencing_token()));
    BOOST_TEST(bob->grant().lock.expires_in().count() == 30'000);
    BOOST_TEST(world.here.registry->waiting() == 0u);
    BOOST_TEST(world.here.queue.sent(queue_call::claim) == 1u);
}

BOOST_AUTO_TEST_CASE(a_release_on_one_node_is_a_grant_on_another) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    const auto carol = world.wait_at(world.there, "carol");
    world.release(world.there, "alice");
    BOOST_TEST(bob->granted());
    BOOST_TEST(!carol->ended());
    world.release(world.there, "bob");
    BOOST_TEST(carol->granted());
}

BOOST_AUTO_TEST_CASE(waited_ends_when_the_claim_is_sent) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    world.pass(1'000ms);
    world.here.queue.of(queue_call::claim).stops_after = true;
    world.release(world.here, "alice");
    world.pass(500ms);
    world.here.queue.let_go();
    world.run();
    BOOST_REQUIRE(bob->granted());
    BOOST_TEST(bob->grant().waited->count() == 1'000);
}

BOOST_AUTO_TEST_CASE(a_wake_that_comes_before_the_place_is_known_is_not_lost) {
    world world;
    world.hold("alice");
    world.here.queue.of(queue_call::stand).stops_after = true;
    const auto bob = world.wait_at(world.here, "bob");
    world.release(world.there, "alice");
    BOOST_TEST(!bob->ended());
    world.here.queue.let_go();
    world.run();
    BOOST_TEST(bob->granted());
}

// ---- Grants at once, by the node that is the waiter's own

BOOST_AUTO_TEST_CASE(a_lock_that_was_handed_over_is_the_waiters_without_a_claim) {
    world world;
    const lock held = world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    world.pass(1'000ms);
    world.here.registry->deliver(world.handed_to("bob"), world.time.steady - 100ms);
    world.run();
    BOOST_REQUIRE(bob->granted());
    BOOST_TEST((bob->grant().lock.fencing_token() > held.fencing_token()));
    BOOST_TEST(bob->grant().waited->count() == 900);
    BOOST_TEST(world.here.registry->waiting() == 0u);
    BOOST_TEST(world.here.queue.sent(queue_call::claim) == 0u);
    BOOST_TEST(world.here.queue.sent(queue_call::release) == 0u);
}

BOOST_AUTO_TEST_CASE(a_lock_that_was_handed_to_nobody_is_given_back) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    auto handed = world.handed_to("bob");
    world.hang_up(bob);
    world.run();
    world.here.registry->deliver(std::move(handed), world.time.steady);
    world.run();
    BOOST_TEST(bob->aborted);
    BOOST_TEST(world.here.queue.sent(queue_call::release) == 1u);
}

BOOST_AUTO_TEST_CASE(a_lock_that_is_handed_over_during_a_claim_is_answered_once) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    auto handed = world.handed_to("bob");
    world.here.queue.of(queue_call::claim).stops_before = true;
    world.release(world.here, "alice");
    BOOST_TEST(world.here.queue.sent(queue_call::claim) == 1u);
    world.here.registry->deliver(std::move(handed), world.time.steady);
    world.run();
    BOOST_REQUIRE(bob->granted());
    world.here.queue.let_go();  // This one is granted, too; nothing may be given back for it.
    world.run();
    BOOST_TEST(world.here.queue.sent(queue_call::release) == 0u);
    BOOST_TEST(world.holder() == "bob");
    BOOST_TEST(world.here.registry->waiting() == 0u);
}

BOOST_AUTO_TEST_CASE(a_lock_that_is_handed_over_before_the_place_is_known_is_not_lost) {
    world world;
    world.hold("alice");
    world.here.queue.of(queue_call::stand).stops_after = true;
    const auto bob = world.wait_at(world.here, "bob");
    world.here.registry->deliver(world.handed_to("bob"), world.time.steady);
    world.run();
    BOOST_TEST(!bob->ended());
    BOOST_TEST(world.here.queue.sent(queue_call::release) == 0u);
    world.here.queue.let_go();
    world.run();
    BOOST_TEST(bob->granted());
}

BOOST_AUTO_TEST_CASE(a_lock_that_is_handed_over_early_to_a_place_that_never_comes_is_given_back) {
    world world;
    world.hold("alice");
    world.here.queue.of(queue_call::stand).stops_after = true;
    const auto bob = world.wait_at(world.here, "bob");
    auto handed = world.handed_to("bob");
    handed.place_number += 1;
    world.here.registry->deliver(std::move(handed), world.time.steady);
    world.here.queue.let_go();
    world.run();
    BOOST_TEST(!bob->ended());
    BOOST_TEST(world.here.queue.sent(queue_call::release) == 1u);
}

// ---- Refusals

BOOST_AUTO_TEST_CASE(when_the_time_is_up_the_place_is_kept) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.there, "bob");
    const auto carol = world.wait_at(world.here, "carol", 10s);
    world.pass(9'999ms);
    BOOST_TEST(!carol->ended());
    world.pass(1ms);

    BOOST_REQUIRE(carol->refused());
    BOOST_TEST(carol->refusal().retry_after.count() == 20'000);
    BOOST_REQUIRE(carol->refusal().place.has_value());
    BOOST_TEST(carol->refusal().place->position == 2u);
    BOOST_TEST(carol->refusal().place->kept_for.count() == 5'000);
    BOOST_TEST(world.here.registry->waiting() == 0u);

    // It is kept indeed: she stands before dave, who came later, when she asks again.
    const auto dave = world.wait_at(world.here, "dave", 5s);
    const auto again = world.wait_at(world.there, "carol", 5s);
    world.pass(5s);
    BOOST_TEST(again->refusal().place->position == 2u);
    BOOST_TEST(dave->refusal().place->position == 3u);
}

BOOST_AUTO_TEST_CASE(a_claim_under_way_decides_when_the_time_is_up) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob", 10s);
    world.here.queue.of(queue_call::claim).stops_before = true;
    world.pass(9'900ms);
    world.release(world.here, "alice");
    world.pass(200ms);
    BOOST_TEST(!bob->ended());
    world.here.queue.let_go();
    world.run();
    BOOST_TEST(bob->granted());
}

BOOST_AUTO_TEST_CASE(a_claim_in_vain_is_followed_by_a_withdrawal_when_the_time_is_up) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob", 10s);
    world.here.queue.of(queue_call::claim).stops_before = true;
    world.pass(9'900ms);
    world.renew("alice", 60);
    world.pass(200ms);
    BOOST_TEST(!bob->ended());
    world.here.queue.let_go();
    world.run();
    BOOST_REQUIRE(bob->refused());
    BOOST_TEST(bob->refusal().place->position == 1u);
    BOOST_TEST(bob->refusal().retry_after.count() == 59'800);
}

BOOST_AUTO_TEST_CASE(a_withdrawal_that_fails_is_told_as_a_problem_without_effect) {
    const std::vector<std::pair<errc, errc>> expected{{errc::unavailable, errc::unavailable},
                                                      {errc::overloaded, errc::overloaded},
                                                      {errc::internal, errc::internal},
                                                      {errc::outcome_unknown, errc::unavailable}};
    for (const auto& [why, told] : expected) {
        world world;
        world.hold("alice");
        const auto bob = world.wait_at(world.here, "bob", 1s);
        const auto carol = world.wait_at(world.there, "carol");
        world.here.queue.of(queue_call::withdraw).fails = {why};
        world.pass(1s);
        BOOST_TEST(bob->failed_with(told));

        // The place still stands. Surveys find that it is nobody's.
        world.survey();
        world.pass(1s);
        world.survey();
        world.release(world.there, "alice");
        BOOST_TEST(carol->granted());
    }
}

BOOST_AUTO_TEST_CASE(a_full_line_and_a_failing_stand_are_told) {
    world world;
    world.hold("alice");
    world.here.queue.of(queue_call::stand).fails = {errc::overloaded, errc::outcome_unknown};
    BOOST_TEST(world.wait_at(world.here, "bob")->failed_with(errc::overloaded));
    BOOST_TEST(world.wait_at(world.here, "carol")->failed_with(errc::outcome_unknown));
    for (int each = 0; each < 1'000; ++each) {
        stand_command command(acquire_command(resource("r"), owner(std::to_string(each)), seconds(30)),
                              world.there_store->node());
        BOOST_REQUIRE(tests::wait_for(world.context, world.there_store->stand(std::move(command), {})));
    }
    const auto dave = world.wait_at(world.here, "dave");
    BOOST_REQUIRE((dave->answer && *dave->answer));
    BOOST_TEST(std::holds_alternative<service::queue_full>(**dave->answer));
    BOOST_TEST(world.here.registry->waiting() == 0u);
}

BOOST_AUTO_TEST_CASE(a_place_whose_stand_was_not_answered_does_not_stay) {
    world world;
    world.hold("alice");
    world.here.queue.of(queue_call::stand).answer_is_lost = {errc::outcome_unknown};
    BOOST_TEST(world.wait_at(world.here, "bob")->failed_with(errc::outcome_unknown));
    const auto carol = world.wait_at(world.there, "carol");
    world.survey();
    BOOST_TEST(world.here.queue.sent(queue_call::withdraw) == 0u);
    world.survey();
    BOOST_TEST(world.here.queue.sent(queue_call::withdraw) == 1u);
    world.release(world.here, "alice");
    BOOST_TEST(carol->granted());
    world.survey();
    BOOST_TEST(world.here.queue.sent(queue_call::withdraw) == 1u);
}

// ---- The end of the lease

BOOST_AUTO_TEST_CASE(an_ended_lease_is_handed_over_at_its_end_and_once) {
    world world;
    world.hold("alice", 5);
    const auto bob = world.wait_at(world.here, "bob");
    const auto carol = world.wait_at(world.here, "carol");
    const auto dave = world.wait_at(world.here, "dave");
    world.pass(4'999ms);
    BOOST_TEST(world.here.queue.sent(queue_call::hand_over) == 0u);
    BOOST_TEST(!bob->ended());
    world.pass(1ms);

    BOOST_REQUIRE(bob->granted());
    BOOST_TEST(bob->grant().waited->count() == 5'000);
    BOOST_TEST(!carol->ended());
    BOOST_TEST(world.here.queue.sent(queue_call::hand_over) == 1u);
    BOOST_TEST(world.here.queue.sent(queue_call::claim) == 1u);
    world.pass(10s);
    BOOST_TEST(world.here.queue.sent(queue_call::hand_over) == 1u);
}

BOOST_AUTO_TEST_CASE(the_waiters_node_may_be_another_than_the_one_that_hands_over) {
    world world;
    world.hold("alice", 5);
    const auto bob = world.wait_at(world.there, "bob");
    const auto carol = world.wait_at(world.here, "carol");
    world.there.queue.of(queue_call::hand_over).fails = {errc::unavailable};
    world.pass(5s);
    BOOST_TEST(bob->granted());
    BOOST_TEST(!carol->ended());
}

BOOST_AUTO_TEST_CASE(the_alarm_follows_a_renewal_to_a_later_end) {
    for (const bool heard : {true, false}) {
        world world;
        world.hold("alice", 5);
        const auto bob = world.wait_at(world.here, "bob", 50s);
        world.pass(4s);
        world.renew("alice", 10, heard);
        if (!heard) world.survey();
        const auto expected = heard ? 1u : 0u;
        BOOST_TEST(world.here.queue.sent(queue_call::claim) == expected);
        world.pass(9'999ms);
        BOOST_TEST(world.here.queue.sent(queue_call::hand_over) == 0u);
        BOOST_TEST(!bob->ended());
        world.pass(1ms);
        BOOST_TEST(bob->granted());
        BOOST_TEST(bob->grant().waited->count() == 14'000);
    }
}

BOOST_AUTO_TEST_CASE(the_alarm_follows_a_renewal_to_an_earlier_end) {
    for (const bool heard : {true, false}) {
        world world;
        world.hold("alice", 30);
        const auto bob = world.wait_at(world.here, "bob", 50s);
        world.pass(4s);
        world.renew("alice", 3, heard);
        if (!heard) world.survey();
        world.pass(2'999ms);
        BOOST_TEST(!bob->ended());
        world.pass(1ms);
        BOOST_TEST(bob->granted());
    }
}

BOOST_AUTO_TEST_CASE(an_old_survey_does_not_move_the_alarm_back) {
    world world;
    world.hold("alice", 5);
    const auto bob = world.wait_at(world.here, "bob", 50s);
    world.pass(1s);
    const auto began = world.time.steady;
    world.pass(10ms);
    world.renew("alice", 20);
    // It read the place before the renewal, and comes after the claim that heard of it.
    std::vector<surveyed_place> old;
    old.emplace_back(place(resource("r"), 1, 1), false, 4'000ms);
    world.here.queue.tell_survey(std::move(old), began);
    world.pass(19'999ms);
    BOOST_TEST(world.here.queue.sent(queue_call::hand_over) == 0u);
    world.pass(1ms);
    BOOST_TEST(bob->granted());
}

BOOST_AUTO_TEST_CASE(a_hand_over_under_way_is_not_sent_twice) {
    world world;
    world.hold("alice", 5);
    const auto bob = world.wait_at(world.here, "bob");
    world.here.queue.of(queue_call::hand_over).stops_before = true;
    world.pass(5s);
    world.pass(500ms);
    world.survey();
    BOOST_TEST(world.here.queue.sent(queue_call::hand_over) == 1u);
    world.here.queue.let_go();
    world.run();
    BOOST_TEST(bob->granted());
}

BOOST_AUTO_TEST_CASE(a_failed_hand_over_is_repeated_after_the_next_survey) {
    world world;
    world.hold("alice", 5);
    const auto bob = world.wait_at(world.here, "bob");
    world.here.queue.of(queue_call::hand_over).fails = {errc::unavailable};
    world.pass(5'500ms);
    BOOST_TEST(!bob->ended());
    world.survey();
    BOOST_TEST(bob->granted());
    BOOST_TEST(world.here.queue.sent(queue_call::hand_over) == 2u);
}

BOOST_AUTO_TEST_CASE(other_lines_have_ends_of_their_own) {
    world world;
    world.hold("alice", 5);
    world.hold("alice", 3, "s");
    const auto bob = world.wait_at(world.here, "bob");
    const auto carol = world.start(world.here, "carol", 20s, "", "s");
    world.pass(3s);
    BOOST_TEST(carol->granted());
    BOOST_TEST(!bob->ended());
    world.pass(2s);
    BOOST_TEST(bob->granted());
}

// ---- Clients that go

BOOST_AUTO_TEST_CASE(a_waiter_whose_client_has_gone_is_never_granted) {
    for (const auto type : {boost::asio::cancellation_type::terminal, boost::asio::cancellation_type::total}) {
        world world;
        world.hold("alice");
        const auto bob = world.wait_at(world.here, "bob");
        const auto carol = world.wait_at(world.here, "carol");
        world.hang_up(bob, type);
        world.run();
        BOOST_TEST(bob->aborted);
        BOOST_TEST(world.here.registry->waiting() == 1u);
        BOOST_TEST(world.here.queue.sent(queue_call::withdraw) == 1u);
        world.release(world.here, "alice");
        BOOST_TEST(carol->granted());
        BOOST_TEST(world.here.queue.sent(queue_call::claim) == 1u);
    }
}

BOOST_AUTO_TEST_CASE(partial_cancellation_is_not_the_end_of_a_client) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    world.hang_up(bob, boost::asio::cancellation_type::partial);
    world.run();
    world.release(world.here, "alice");
    BOOST_TEST(bob->granted());
}

BOOST_AUTO_TEST_CASE(an_offer_to_a_client_that_is_just_gone_is_not_claimed) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    const auto carol = world.wait_at(world.there, "carol");
    world.release_unheard("alice");
    world.hang_up(bob);
    world.survey();
    BOOST_TEST(world.here.queue.sent(queue_call::claim) == 0u);
    BOOST_TEST(carol->granted());
}

BOOST_AUTO_TEST_CASE(a_claim_that_was_not_sent_yet_is_not_sent_for_a_client_that_has_gone) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    const auto carol = world.wait_at(world.there, "carol");
    world.release_unheard("alice");
    // The claim is begun, and the client's end noticed, once the context runs: the end first.
    world.hang_up(bob);
    world.here.registry->spread({wake{world.here.store.node().value(), 1}});
    world.run();
    BOOST_TEST(world.here.queue.sent(queue_call::claim) == 0u);
    BOOST_TEST(carol->granted());
}

BOOST_AUTO_TEST_CASE(a_grant_whose_client_went_during_the_claim_is_given_back) {
    for (const bool before : {true, false}) {
        world world;
        world.hold("alice");
        const auto bob = world.wait_at(world.here, "bob");
        const auto carol = world.wait_at(world.there, "carol");
        auto& claims = world.here.queue.of(queue_call::claim);
        (before ? claims.stops_before : claims.stops_after) = true;
        world.release(world.here, "alice");
        world.hang_up(bob);
        world.run();
        BOOST_TEST(bob->aborted);
        BOOST_TEST(!carol->ended());
        world.here.queue.let_go();
        world.run();
        BOOST_TEST(carol->granted());
        BOOST_TEST(world.here.queue.sent(queue_call::release) == 1u);
    }
}

BOOST_AUTO_TEST_CASE(a_client_that_goes_before_its_place_is_known_leaves_nothing_behind) {
    world world;
    world.hold("alice");
    world.here.queue.of(queue_call::stand).stops_after = true;
    const auto bob = world.wait_at(world.here, "bob");
    world.hang_up(bob);
    const auto carol = world.wait_at(world.there, "carol");
    BOOST_TEST(bob->aborted);
    world.here.queue.let_go();
    world.run();
    BOOST_TEST(world.here.queue.sent(queue_call::withdraw) == 1u);
    world.release(world.here, "alice");
    BOOST_TEST(carol->granted());
}

BOOST_AUTO_TEST_CASE(a_lock_that_is_granted_at_once_to_a_client_that_has_gone_is_given_back) {
    world world;
    world.here.queue.of(queue_call::stand).stops_after = true;
    const auto bob = world.wait_at(world.here, "bob");
    BOOST_TEST(world.holder() == "bob");
    world.hang_up(bob);
    world.here.queue.let_go();
    world.run();
    BOOST_TEST(world.holder().empty());
}

BOOST_AUTO_TEST_CASE(a_client_that_goes_before_anything_was_sent_has_no_effect) {
    world world;
    world.hold("alice");
    const auto carol = world.start(world.there, "carol");
    world.hang_up(carol);
    world.run();
    BOOST_TEST(carol->aborted);
    BOOST_TEST(world.there.queue.sent(queue_call::stand) == 0u);
    BOOST_TEST(world.there.registry->waiting() == 0u);
}

BOOST_AUTO_TEST_CASE(a_client_that_goes_while_it_is_withdrawn_is_withdrawn_once) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob", 1s);
    world.here.queue.of(queue_call::withdraw).stops_before = true;
    world.pass(1s);
    world.hang_up(bob);
    world.run();
    BOOST_TEST(bob->aborted);
    world.here.queue.let_go();
    world.run();
    BOOST_TEST(world.here.queue.sent(queue_call::withdraw) == 1u);
    BOOST_TEST(world.here.registry->waiting() == 0u);
}

BOOST_AUTO_TEST_CASE(an_answer_that_was_not_delivered_gives_the_lock_back) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    const auto carol = world.wait_at(world.there, "carol");
    world.release(world.here, "alice");
    BOOST_REQUIRE(bob->granted());
    bob->grant().undelivered();
    world.run();
    BOOST_TEST(carol->granted());
}

BOOST_AUTO_TEST_CASE(a_grant_that_was_replayed_elsewhere_is_not_given_back) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob", 20s, "k1");
    world.release(world.here, "alice");
    BOOST_REQUIRE(bob->granted());
    const auto again = world.wait_at(world.there, "bob", 20s, "k1");
    BOOST_REQUIRE(again->granted());
    BOOST_TEST((again->grant().lock.fencing_token() == bob->grant().lock.fencing_token()));
    bob->grant().undelivered();
    world.run();
    BOOST_TEST(world.holder() == "bob");
}

BOOST_AUTO_TEST_CASE(what_could_not_be_given_back_is_given_back_after_the_next_survey) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    world.release(world.here, "alice");
    world.here.queue.of(queue_call::release).fails = {errc::unavailable};
    bob->grant().undelivered();
    world.run();
    BOOST_TEST(world.holder() == "bob");
    world.survey();
    BOOST_TEST(world.holder().empty());
    world.survey();
    BOOST_TEST(world.here.queue.sent(queue_call::release) == 2u);
}

BOOST_AUTO_TEST_CASE(a_gift_back_of_unknown_outcome_is_not_repeated) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    world.release(world.here, "alice");
    world.here.queue.of(queue_call::release).fails = {errc::outcome_unknown};
    bob->grant().undelivered();
    world.run();
    world.survey();
    BOOST_TEST(world.here.queue.sent(queue_call::release) == 1u);
}

BOOST_AUTO_TEST_CASE(undelivered_after_the_registry_is_harmless) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    world.release(world.here, "alice");
    world.here.registry.reset();
    bob->grant().undelivered();
    world.run();
    BOOST_TEST(world.holder() == "bob");
}

// ---- Places that go

BOOST_AUTO_TEST_CASE(leaving_ends_the_waiting_request_at_once) {
    for (const bool elsewhere : {true, false}) {
        world world;
        world.hold("alice");
        const auto bob = world.wait_at(world.here, "bob");
        BOOST_TEST((world.leave(elsewhere ? world.there : world.here, "bob") == leave_result::left));
        BOOST_REQUIRE(bob->refused());
        BOOST_TEST(!bob->refusal().place.has_value());
        BOOST_TEST(bob->refusal().retry_after.count() == 30'000);
        BOOST_TEST(world.here.registry->waiting() == 0u);
    }
}

BOOST_AUTO_TEST_CASE(asking_again_elsewhere_ends_the_older_request_at_once) {
    world world;
    world.hold("alice");
    const auto older = world.wait_at(world.here, "bob");
    const auto newer = world.wait_at(world.there, "bob");
    BOOST_REQUIRE(older->refused());
    BOOST_TEST(!older->refusal().place.has_value());
    BOOST_TEST(!newer->ended());
    world.release(world.here, "alice");
    BOOST_TEST(newer->granted());
}

BOOST_AUTO_TEST_CASE(a_late_disconnect_of_the_older_request_changes_nothing) {
    world world;
    world.hold("alice");
    const auto older = world.wait_at(world.here, "bob");
    // The older one's node has not heard of the newer one when its client goes.
    auto newer = world.start(world.there, "bob");
    world.context.restart();
    world.context.poll();
    world.here.store.lose_announcements();
    BOOST_TEST(!older->ended());
    world.hang_up(older);
    world.run();
    BOOST_TEST(world.here.queue.sent(queue_call::withdraw) == 1u);
    world.release(world.here, "alice");
    BOOST_TEST(newer->granted());
}

BOOST_AUTO_TEST_CASE(asking_again_on_this_node_ends_the_older_request_at_once) {
    world world;
    world.hold("alice");
    const auto older = world.wait_at(world.here, "bob");
    const auto newer = world.wait_at(world.here, "bob", 30s);
    BOOST_REQUIRE(older->refused());
    BOOST_TEST(!older->refusal().place.has_value());
    BOOST_TEST(world.here.registry->waiting() == 1u);
    world.hang_up(older);
    world.pass(20s);
    BOOST_TEST(!newer->ended());
    BOOST_TEST(world.here.queue.sent(queue_call::withdraw) == 0u);
    world.release(world.here, "alice");
    BOOST_TEST(newer->granted());
}

BOOST_AUTO_TEST_CASE(the_later_request_stays_whichever_answer_comes_first) {
    world world;
    world.hold("alice");
    auto& stands = world.here.queue.of(queue_call::stand);
    stands.stops_after = true;
    const auto older = world.wait_at(world.here, "bob");
    stands.stops_after = false;
    const auto newer = world.wait_at(world.here, "bob");
    BOOST_TEST(!older->ended());
    world.here.queue.let_go();
    world.run();
    BOOST_TEST(older->refused());
    BOOST_TEST(!newer->ended());
    world.release(world.here, "alice");
    BOOST_TEST(newer->granted());
}

BOOST_AUTO_TEST_CASE(an_older_request_ends_when_the_newer_is_granted_at_once) {
    world world;
    world.hold("alice");
    const auto older = world.wait_at(world.here, "bob");
    world.release_unheard("alice");
    const auto newer = world.wait_at(world.here, "bob");
    BOOST_TEST(newer->granted());
    BOOST_TEST(older->refused());
    BOOST_TEST(older->refusal().retry_after.count() <= 30'001);
}

BOOST_AUTO_TEST_CASE(a_claim_of_the_older_request_that_comes_too_late_is_no_grant) {
    world world;
    world.hold("alice");
    const auto older = world.wait_at(world.here, "bob");
    world.here.queue.of(queue_call::claim).stops_before = true;
    world.release(world.here, "alice");
    const auto newer = world.wait_at(world.here, "bob");
    BOOST_TEST(newer->granted());
    BOOST_TEST(older->refused());
    world.here.queue.let_go();
    world.run();
    BOOST_TEST(world.holder() == "bob");
    BOOST_TEST(world.here.queue.sent(queue_call::release) == 0u);
}

BOOST_AUTO_TEST_CASE(a_node_that_was_thought_dead_stands_again) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob", 50s);
    const auto carol = world.wait_at(world.there, "carol", 50s);
    world.here.store.beats(false);
    world.pass(9s);
    world.there.store.survey(world.time.steady);
    // Somebody comes by and finds bob's place forgotten.
    const auto dave = world.wait_at(world.there, "dave", 50s);
    world.here.store.beats(true);
    world.survey();
    BOOST_TEST(!bob->ended());
    BOOST_TEST(world.here.queue.sent(queue_call::stand) == 2u);
    world.release(world.here, "alice");
    BOOST_TEST(carol->granted());
    world.release(world.there, "carol");
    BOOST_TEST(dave->granted());
    world.release(world.there, "dave");
    BOOST_TEST(bob->granted());
}

BOOST_AUTO_TEST_CASE(a_node_that_was_silent_for_a_moment_goes_on) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob", 50s);
    world.here.store.beats(false);
    world.pass(4s);
    BOOST_TEST(world.wait_at(world.here, "carol")->failed_with(errc::unavailable));
    world.here.store.beats(true);
    world.survey();
    BOOST_TEST(world.here.queue.sent(queue_call::stand) == 1u);
    world.release(world.there, "alice");
    BOOST_TEST(bob->granted());
}

BOOST_AUTO_TEST_CASE(a_request_whose_offer_passed_on_stands_again_in_its_order) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob", 50s);
    const auto carol = world.wait_at(world.there, "carol", 50s);
    const auto dave = world.wait_at(world.there, "dave", 50s);
    world.here.queue.of(queue_call::claim).fails = {errc::unavailable, errc::unavailable};
    world.release(world.there, "alice");
    world.pass(1s);
    world.survey();
    world.pass(1s);
    BOOST_TEST(carol->granted());
    BOOST_TEST(!bob->ended());
    BOOST_TEST(world.here.queue.sent(queue_call::stand) == 2u);
    world.release(world.there, "carol");
    BOOST_TEST(bob->granted());
    BOOST_TEST(!dave->ended());
}

// ---- Surveys

BOOST_AUTO_TEST_CASE(an_offer_that_nobody_told_of_is_found_by_survey) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    world.release_unheard("alice");
    BOOST_TEST(!bob->ended());
    world.survey();
    BOOST_TEST(bob->granted());
}

BOOST_AUTO_TEST_CASE(a_place_that_was_taken_over_unheard_is_found_missing_by_survey) {
    world world;
    world.hold("alice");
    const auto older = world.wait_at(world.here, "bob");
    auto newer = world.start(world.there, "bob");
    world.context.restart();
    world.context.poll();
    world.here.store.lose_announcements();
    world.run();
    BOOST_TEST(!older->ended());
    world.pass(1s);
    world.survey();
    BOOST_TEST(older->refused());
    BOOST_TEST(!newer->ended());
}

BOOST_AUTO_TEST_CASE(a_survey_that_began_before_the_place_was_known_says_nothing_about_it) {
    world world;
    world.hold("alice");
    const auto began = world.time.steady;
    world.pass(5ms);
    const auto older = world.wait_at(world.here, "bob");
    // Taken over unheard, so that no survey has the place any more.
    auto newer = world.start(world.there, "bob");
    world.context.restart();
    world.context.poll();
    world.here.store.lose_announcements();
    world.here.store.survey(began);
    world.run();
    BOOST_TEST(world.here.queue.sent(queue_call::claim) == 0u);
    BOOST_TEST(!older->ended());
    world.survey();
    BOOST_TEST(world.here.queue.sent(queue_call::claim) == 1u);
    BOOST_TEST(older->refused());
}

BOOST_AUTO_TEST_CASE(with_nothing_new_a_survey_sends_nothing) {
    world world;
    world.hold("alice", 60);
    const auto bob = world.wait_at(world.here, "bob", 50s);
    for (int each = 0; each < 30; ++each) {
        world.pass(1s);
        world.survey();
    }
    BOOST_TEST(!bob->ended());
    BOOST_TEST(world.here.queue.sent(queue_call::claim) == 0u);
    BOOST_TEST(world.here.queue.sent(queue_call::hand_over) == 0u);
    BOOST_TEST(world.here.queue.sent(queue_call::stand) == 1u);
}

BOOST_AUTO_TEST_CASE(a_failed_claim_is_repeated_after_the_next_survey) {
    for (const errc why : {errc::unavailable, errc::overloaded, errc::internal}) {
        world world;
        world.hold("alice");
        const auto bob = world.wait_at(world.here, "bob");
        world.here.queue.of(queue_call::claim).fails = {why};
        world.release(world.here, "alice");
        BOOST_TEST(!bob->ended());
        world.pass(1s);
        world.survey();
        BOOST_TEST(bob->granted());
    }
}

BOOST_AUTO_TEST_CASE(a_claim_of_unknown_outcome_is_told_as_such) {
    for (const bool took_effect : {true, false}) {
        world world;
        world.hold("alice");
        const auto bob = world.wait_at(world.here, "bob");
        const auto carol = world.wait_at(world.there, "carol");
        auto& claims = world.here.queue.of(queue_call::claim);
        (took_effect ? claims.answer_is_lost : claims.fails) = {errc::outcome_unknown};
        world.release(world.here, "alice");
        BOOST_TEST(bob->failed_with(errc::outcome_unknown));
        // If it had none, nothing keeps the lock from the next one.
        BOOST_TEST(carol->granted() == !took_effect);
    }
}

BOOST_AUTO_TEST_CASE(under_a_key_a_claim_of_unknown_outcome_is_repeated) {
    for (const bool took_effect : {true, false}) {
        world world;
        world.hold("alice");
        const auto bob = world.wait_at(world.here, "bob", 20s, "k1");
        auto& claims = world.here.queue.of(queue_call::claim);
        (took_effect ? claims.answer_is_lost : claims.fails) = {errc::outcome_unknown};
        world.release(world.here, "alice");
        BOOST_TEST(!bob->ended());
        world.pass(1s);
        world.survey();
        BOOST_REQUIRE(bob->granted());
        BOOST_TEST(world.holder() == "bob");
    }
}

BOOST_AUTO_TEST_CASE(a_claim_that_stays_unknown_until_the_time_is_up_is_told_as_such) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob", 1s, "k1");
    world.here.queue.of(queue_call::claim).answer_is_lost = {errc::outcome_unknown};
    world.release(world.here, "alice");
    world.pass(1s);
    BOOST_TEST(bob->failed_with(errc::outcome_unknown));
    BOOST_TEST(world.holder() == "bob");
}

// ---- Drain, bounds, faults

BOOST_AUTO_TEST_CASE(a_drain_answers_everybody_and_keeps_the_places) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    const auto carol = world.wait_at(world.here, "carol");
    const auto dave = world.wait_at(world.there, "dave");
    world.here.queue.of(queue_call::withdraw).stops_before = true;
    world.here.registry->drain();
    world.run();
    BOOST_TEST(bob->failed_with(errc::unavailable));
    BOOST_TEST(carol->failed_with(errc::unavailable));
    BOOST_TEST(world.here.registry->waiting() == 0u);
    BOOST_TEST(world.wait_at(world.here, "erin")->failed_with(errc::unavailable));

    bool settled = false;
    boost::asio::co_spawn(world.context, world.here.registry->settle(30s), [&](std::exception_ptr) { settled = true; });
    world.run();
    BOOST_TEST(!settled);
    world.here.queue.let_go();
    world.run();
    BOOST_TEST(settled);

    // Kept: they hold nobody back, and are taken over elsewhere.
    const auto again = world.wait_at(world.there, "bob");
    world.release(world.there, "alice");
    BOOST_TEST(again->granted());
    world.release(world.there, "bob");
    BOOST_TEST(dave->granted());
}

BOOST_AUTO_TEST_CASE(a_drain_during_a_claim_gives_the_lock_back) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    world.here.queue.of(queue_call::claim).stops_after = true;
    world.release(world.here, "alice");
    world.here.registry->drain();
    world.run();
    BOOST_TEST(bob->failed_with(errc::unavailable));
    BOOST_TEST(world.holder() == "bob");
    world.here.queue.let_go();
    world.run();
    BOOST_TEST(world.holder().empty());
}

BOOST_AUTO_TEST_CASE(settling_has_a_limit) {
    world world;
    world.hold("alice");
    world.wait_at(world.here, "bob");
    world.here.queue.of(queue_call::withdraw).stops_before = true;
    world.here.registry->drain();
    world.run();
    bool settled = false;
    boost::asio::co_spawn(world.context, world.here.registry->settle(20ms),
                          [&](std::exception_ptr) { settled = true; });
    world.context.restart();
    while (!settled)
        world.context.run_one();
    BOOST_TEST(world.here.queue.of(queue_call::withdraw).under_way == 1u);
    world.here.queue.let_go();
    world.run();
}

BOOST_AUTO_TEST_CASE(commands_of_the_registrys_own_are_bounded) {
    world world(5'000);
    world.hold("alice", 60);
    std::vector<request_ptr> clients;
    for (int each = 0; each < 900; ++each)
        clients.push_back(world.start(world.here, "waiter " + std::to_string(each)));
    world.run();
    BOOST_TEST(world.here.registry->waiting() == 900u);
    auto& withdrawals = world.here.queue.of(queue_call::withdraw);
    withdrawals.stops_before = true;
    world.here.registry->drain();
    world.run();
    BOOST_TEST(withdrawals.under_way == 256u);
    for (const auto& client : clients)
        BOOST_TEST(client->failed_with(errc::unavailable));
    world.here.queue.let_go();
    world.run();
    BOOST_TEST(withdrawals.sent == 900u);
    BOOST_TEST(withdrawals.most_under_way == 256u);
}

BOOST_AUTO_TEST_CASE(more_waiters_than_a_node_may_have_are_refused) {
    world world(2);
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    const auto carol = world.wait_at(world.here, "carol");
    BOOST_TEST(world.wait_at(world.here, "dave")->failed_with(errc::overloaded));
    BOOST_TEST(world.here.registry->waiting() == 2u);
    world.hang_up(bob);
    world.run();
    const auto dave = world.wait_at(world.here, "dave");
    BOOST_TEST(!dave->ended());
    BOOST_TEST(!carol->ended());
}

BOOST_AUTO_TEST_CASE(a_fault_of_the_queue_leaves_run) {
    world world;
    world.hold("alice");
    world.here.queue.of(queue_call::stand).throws = true;
    const auto bob = world.start(world.here, "bob");
    BOOST_CHECK_THROW(world.run(), std::runtime_error);
    BOOST_TEST(!bob->ended());
}

BOOST_AUTO_TEST_CASE(the_end_of_the_registry_is_told_to_who_waits) {
    world world;
    world.hold("alice");
    const auto bob = world.wait_at(world.here, "bob");
    world.here.queue.of(queue_call::stand).stops_after = true;
    const auto carol = world.wait_at(world.here, "carol");
    world.here.registry.reset();
    world.run();
    BOOST_TEST(bob->failed_with(errc::unavailable));
    BOOST_TEST(carol->failed_with(errc::unavailable));
    world.here.queue.let_go();
    world.run();
}

BOOST_AUTO_TEST_CASE(the_real_alarm_rings_once_and_not_after_it_was_stopped) {
    boost::asio::io_context context;
    const auto alarm = service::make_alarm(context.get_executor());
    std::vector<int> rung;
    alarm->set(alarm->now() + 1h, [&] { rung.push_back(1); });
    alarm->set(alarm->now(), [&] { rung.push_back(2); });
    BOOST_TEST(rung.empty());
    context.run();
    alarm->set(alarm->now(), [&] { rung.push_back(3); });
    alarm->stop();
    context.restart();
    context.run();
    BOOST_TEST(rung == std::vector<int>{2}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
