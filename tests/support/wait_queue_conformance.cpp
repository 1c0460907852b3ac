#include "support/wait_queue_conformance.hpp"

#include "support/wait_for.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

namespace holdfast::tests {

using namespace domain;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

namespace {

constexpr std::int64_t ttl_seconds = 30;

acquire_command asking(const std::string& name, const std::string& who, const std::string& key_text = "") {
    std::optional<idempotency_key> with;
    if (!key_text.empty()) with = key(key_text);
    return acquire_command(resource(name), owner(who), seconds(ttl_seconds), with);
}

template <class Outcome>
Outcome answered(queue_node& node, boost::asio::awaitable<result<Outcome>> call) {
    auto answer = wait_for(node.leases().context(), std::move(call));
    BOOST_REQUIRE_MESSAGE(answer, "a command failed: " << answer.error().message());
    return *std::move(answer);
}

store::deadline deadline_of(queue_node& node) {
    return std::chrono::steady_clock::now() + node.leases().budget;
}

template <class Wanted, class Variant>
const Wanted& must_be(const Variant& answer) {
    BOOST_REQUIRE_MESSAGE(std::holds_alternative<Wanted>(answer), "the answer is number " << answer.index());
    return std::get<Wanted>(answer);
}

bool concerns(const std::vector<wake>& wakes, const wake& whom) {
    return std::find(wakes.begin(), wakes.end(), whom) != wakes.end();
}

std::optional<lock> seen(queue_node& node, const std::string& name) {
    const auto answer = node.leases().look(look_command(resource(name)));
    BOOST_REQUIRE(answer);
    return answer->result() == look_result::found ? std::optional(answer->lock()) : std::nullopt;
}

acquire_result fast_acquire(queue_node& node, const std::string& name, const std::string& who) {
    const auto answer = node.leases().acquire(asking(name, who));
    BOOST_REQUIRE(answer);
    return answer->result();
}

void must_be_kept(const claim_outcome& outcome) {
    BOOST_TEST(must_be<not_offered>(outcome).is_kept);
}

}  // namespace

stand_outcome queue_node::stand(const std::string& name, const std::string& who, const std::string& key_text) {
    stand_command command(asking(name, who, key_text), queue().node());
    BOOST_REQUIRE(command.node());
    return answered(*this, queue().stand(std::move(command), deadline_of(*this)));
}

stand_outcome queue_node::ask(const std::string& name, const std::string& who) {
    stand_command command(asking(name, who), std::nullopt);
    return answered(*this, queue().stand(std::move(command), deadline_of(*this)));
}

claim_outcome queue_node::claim(const place& place, const std::string& who, const std::string& key_text) {
    claim_command command(place, asking(place.resource().text(), who, key_text));
    return answered(*this, queue().claim(std::move(command), deadline_of(*this)));
}

withdraw_outcome queue_node::withdraw(const place& place) {
    return answered(*this, queue().withdraw(withdraw_command(place), deadline_of(*this)));
}

leave_outcome queue_node::leave(const std::string& name, const std::string& who) {
    return answered(*this, queue().leave(leave_command(resource(name), owner(who)), deadline_of(*this)));
}

hand_over_outcome queue_node::hand_over(const std::string& name) {
    return answered(*this, queue().hand_over(hand_over_command(resource(name)), deadline_of(*this)));
}

queue_release_outcome queue_node::release(const std::string& name, const std::string& who,
                                          std::optional<fencing_token> token) {
    queue_release_command command(release_command(resource(name), owner(who), token), false);
    return answered(*this, queue().release(std::move(command), deadline_of(*this)));
}

queue_release_outcome queue_node::give_back(const lock& lock) {
    queue_release_command command(release_command(lock.resource(), lock.owner(), lock.fencing_token()), true);
    return answered(*this, queue().release(std::move(command), deadline_of(*this)));
}

place queue_node::must_stand(const std::string& name, const std::string& who, const std::string& key_text) {
    return must_be<queue_standing>(stand(name, who, key_text).answer).place;
}

lock queue_node::must_claim(const place& place, const std::string& who, const std::string& key_text) {
    return must_be<queue_grant>(claim(place, who, key_text)).lock;
}

milliseconds queue_node::must_not_be_offered(const place& place, const std::string& who) {
    const auto outcome = claim(place, who);
    BOOST_TEST(!must_be<not_offered>(outcome).is_kept);
    return must_be<not_offered>(outcome).ends_in;
}

void queue_node::must_be_gone(const place& place, const std::string& who) {
    must_be<place_gone>(claim(place, who));
}

std::vector<wake> queue_node::must_release(const std::string& name, const std::string& who) {
    auto outcome = release(name, who);
    BOOST_REQUIRE(outcome.result == release_result::released);
    return std::move(outcome.wakes);
}

namespace conformance {

void a_free_lock_is_granted_at_once(queue_under_test& queues) {
    const auto outcome = queues.here().stand("a", "alice");
    const lock grant = must_be<queue_grant>(outcome.answer).lock;
    BOOST_TEST((grant.expires_at() - grant.acquired_at() == std::chrono::seconds(ttl_seconds)));
    BOOST_TEST(grant.owner().text() == "alice");
    queues.here().leases().must_be_refused("a", "bob");

    BOOST_REQUIRE(queues.here().leases().release({resource("a"), owner("alice")}));
    const lock next = must_be<queue_grant>(queues.there().ask("a", "bob").answer).lock;
    BOOST_TEST((next.fencing_token() > grant.fencing_token()));
}

void the_line_is_served_in_order_of_arrival(queue_under_test& queues) {
    lock last = queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.here().must_stand("a", "bob");
    const place carol = queues.there().must_stand("a", "carol");
    const place dave = queues.here().must_stand("a", "dave");
    BOOST_TEST(bob.number() < carol.number());
    BOOST_TEST(carol.number() < dave.number());

    std::string holder = "alice";
    const std::vector<std::tuple<queue_node*, place, std::string>> line{
        {&queues.here(), bob, "bob"}, {&queues.there(), carol, "carol"}, {&queues.here(), dave, "dave"}};
    for (const auto& [node, place, who] : line) {
        const auto wakes = queues.there().must_release("a", holder);
        BOOST_TEST(concerns(wakes, node->wake_of(place)));
        BOOST_TEST(wakes.size() == 1u);
        for (const auto& [other_node, other, other_who] : line)
            if (other.number() > place.number()) other_node->must_not_be_offered(other, other_who);
        const lock grant = node->must_claim(place, who);
        BOOST_TEST((grant.fencing_token() > last.fencing_token()));
        last = grant;
        holder = who;
    }
    BOOST_TEST(queues.here().must_release("a", "dave").empty());
    queues.here().leases().must_acquire("a", "erin", ttl_seconds);
}

void a_place_tells_its_position_and_when_the_lease_ends(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", 20);
    const auto first = queues.here().stand("a", "bob");
    const auto second = queues.there().stand("a", "carol");
    const auto elsewhere = queues.there().stand("b", "carol");

    BOOST_TEST(must_be<queue_standing>(first.answer).position == 1u);
    BOOST_TEST(must_be<queue_standing>(second.answer).position == 2u);
    BOOST_TEST(must_be<queue_standing>(second.answer).place.resource().text() == "a");
    BOOST_TEST(must_be<queue_standing>(second.answer).ends_in.count() <= 20'000);
    BOOST_TEST(must_be<queue_standing>(second.answer).ends_in.count() > 15'000);
    BOOST_TEST(first.wakes.empty());
    must_be<queue_grant>(elsewhere.answer);
    const milliseconds ends_in =
        queues.there().must_not_be_offered(must_be<queue_standing>(second.answer).place, "carol");
    BOOST_TEST(ends_in.count() <= 20'000);
    BOOST_TEST(ends_in.count() > 15'000);
}

void a_release_hands_over_in_its_own_transaction(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.there().must_stand("a", "bob");
    const auto fast = queues.here().leases().release({resource("a"), owner("alice")});
    BOOST_REQUIRE(fast);
    BOOST_TEST((*fast == release_result::awaited));
    BOOST_TEST((seen(queues.here(), "a")->owner().text() == "alice"));

    queues.here().must_release("a", "alice");

    // Nobody finds it free in between.
    BOOST_TEST((fast_acquire(queues.here(), "a", "carol") == acquire_result::held));
    BOOST_TEST((fast_acquire(queues.here(), "a", "alice") == acquire_result::held));
    const auto refused = queues.here().ask("a", "carol");
    BOOST_TEST(must_be<queue_refusal>(refused.answer).retry_after.count() <= 2'000);
    BOOST_TEST(must_be<queue_refusal>(refused.answer).retry_after.count() >= 1);
    queues.there().must_claim(bob, "bob");
}

void a_confirmation_keeps_the_token_and_starts_the_lease(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.here().must_stand("a", "bob");
    queues.here().must_release("a", "alice");
    const auto offer = seen(queues.here(), "a");
    BOOST_REQUIRE(offer.has_value());
    queues.pass(10ms);
    const lock grant = queues.here().must_claim(bob, "bob");

    BOOST_TEST((grant.fencing_token() == offer->fencing_token()));
    BOOST_TEST((offer->expires_at() - offer->acquired_at() == store::offer_length));
    BOOST_TEST((grant.acquired_at() > offer->acquired_at()));
    BOOST_TEST((grant.expires_at() - grant.acquired_at() == std::chrono::seconds(ttl_seconds)));
    BOOST_TEST(grant.owner().text() == "bob");
    BOOST_TEST(grant.expires_in().count() > 25'000);
    // Confirmed once: it is bob's until it ends, is renewed or released.
    queues.here().must_be_gone(bob, "bob");
    BOOST_TEST(
        (queues.here().leases().renew({resource("a"), owner("bob"), seconds(60)})->result() == renew_result::renewed));
}

void a_release_judges_before_it_hands_over(queue_under_test& queues) {
    const lock grant = queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.here().must_stand("a", "bob");

    const auto other_owner = queues.here().release("a", "carol");
    const auto waiter = queues.here().release("a", "bob");
    const auto other_token = queues.here().release("a", "alice", token(grant.fencing_token().number() + 1));
    for (const auto& refused : {other_owner, waiter, other_token}) {
        BOOST_TEST((refused.result == release_result::forbidden));
        BOOST_TEST(refused.wakes.empty());
    }
    BOOST_TEST((queues.here().release("never held", "alice").result == release_result::not_found));
    queues.here().must_not_be_offered(bob, "bob");
    BOOST_TEST((queues.here().release("a", "alice", grant.fencing_token()).result == release_result::released));
    BOOST_TEST((queues.here().release("a", "alice").result == release_result::forbidden));
    queues.here().must_claim(bob, "bob");
}

void nobody_overtakes_a_living_waiter(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", 1);
    const place bob = queues.there().must_stand("a", "bob");
    queues.pass(1'010ms);

    BOOST_TEST((fast_acquire(queues.here(), "a", "carol") == acquire_result::awaited));
    BOOST_TEST((fast_acquire(queues.here(), "a", "alice") == acquire_result::awaited));
    const auto refused = queues.here().ask("a", "carol");
    must_be<queue_refusal>(refused.answer);
    BOOST_TEST(concerns(refused.wakes, queues.there().wake_of(bob)));
    const auto standing = queues.here().stand("a", "carol");
    BOOST_TEST(must_be<queue_standing>(standing.answer).position == 2u);
    queues.there().must_claim(bob, "bob");
}

void an_ended_lease_is_handed_over_once(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", 2);
    const place bob = queues.there().must_stand("a", "bob");
    queues.here().must_stand("a", "carol");

    const auto early = queues.here().hand_over("a");
    BOOST_REQUIRE(early.ends_in.has_value());
    BOOST_TEST(early.ends_in->count() > 0);
    BOOST_TEST(early.ends_in->count() <= 2'000);
    BOOST_TEST(early.wakes.empty());
    queues.pass(*early.ends_in);
    const auto due = queues.here().hand_over("a");
    const auto again = queues.there().hand_over("a");

    BOOST_REQUIRE(due.ends_in.has_value());
    BOOST_TEST(due.ends_in->count() <= 2'000);
    BOOST_TEST(due.wakes.size() == 1u);
    BOOST_TEST(concerns(due.wakes, queues.there().wake_of(bob)));
    BOOST_REQUIRE(again.ends_in.has_value());
    BOOST_TEST(again.wakes.empty());
    queues.there().must_claim(bob, "bob");
    BOOST_TEST(queues.here().hand_over("a").ends_in->count() > 25'000);
    BOOST_TEST(!queues.here().hand_over("never held").ends_in.has_value());
}

void a_holder_acquires_again_while_others_wait(queue_under_test& queues) {
    const lock first = queues.here().leases().must_acquire("a", "alice", 2);
    const place bob = queues.there().must_stand("a", "bob");
    const auto again = queues.here().leases().acquire(asking("a", "alice"));
    BOOST_REQUIRE(again);
    BOOST_REQUIRE((again->result() == acquire_result::granted));
    BOOST_TEST(again->is_awaited());
    BOOST_TEST((again->grant().fencing_token() > first.fencing_token()));
    BOOST_TEST(queues.there().must_not_be_offered(bob, "bob").count() > 25'000);

    const lock waiting = must_be<queue_grant>(queues.here().stand("a", "alice").answer).lock;
    BOOST_TEST((waiting.fencing_token() > again->grant().fencing_token()));
    queues.here().must_release("a", "alice");
    queues.there().must_claim(bob, "bob");
}

void a_holder_renews_while_others_wait(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    BOOST_TEST(!queues.here().leases().renew({resource("a"), owner("alice"), seconds(30)})->is_awaited());
    const place bob = queues.there().must_stand("a", "bob");
    const auto renewed = queues.here().leases().renew({resource("a"), owner("alice"), seconds(60)});
    BOOST_REQUIRE(renewed);
    BOOST_TEST(renewed->is_awaited());
    BOOST_TEST(queues.there().must_not_be_offered(bob, "bob").count() > 50'000);

    BOOST_REQUIRE(queues.here().leases().renew({resource("a"), owner("alice"), seconds(1)}));
    BOOST_TEST(queues.there().must_not_be_offered(bob, "bob").count() <= 1'000);
}

void an_offer_is_no_lock_yet(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.here().must_stand("a", "bob");
    queues.here().must_release("a", "alice");

    BOOST_TEST((queues.here().leases().renew({resource("a"), owner("bob"), seconds(60)})->result() ==
                renew_result::not_found));
    BOOST_TEST((fast_acquire(queues.here(), "a", "bob") == acquire_result::awaited));
    BOOST_TEST((queues.here().release("a", "bob").result == release_result::not_found));
    queues.here().must_claim(bob, "bob");
}

void an_offer_that_is_not_confirmed_passes_on(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.there().must_stand("a", "bob");
    const place carol = queues.here().must_stand("a", "carol");
    queues.here().must_release("a", "alice");
    queues.pass(2'010ms);
    const auto passed = queues.here().hand_over("a");

    BOOST_TEST(concerns(passed.wakes, queues.here().wake_of(carol)));
    // Its own node hears of it, too: the request that stood there may stand again.
    BOOST_TEST(concerns(passed.wakes, queues.there().wake_of(bob)));
    must_be_kept(queues.there().claim(bob, "bob"));
    const place again = queues.there().must_stand("a", "bob");
    BOOST_TEST(again.number() == bob.number());
    const lock grant = queues.here().must_claim(carol, "carol");
    queues.here().must_release("a", "carol");
    BOOST_TEST((queues.there().must_claim(again, "bob").fencing_token() > grant.fencing_token()));
}

void a_late_claim_confirms_nothing(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.there().must_stand("a", "bob");
    queues.here().must_release("a", "alice");
    queues.pass(2'010ms);

    // The offer has ended, and nobody has come by yet.
    const auto late = queues.there().claim(bob, "bob");
    BOOST_TEST(must_be<not_offered>(late).ends_in.count() == 0);
    BOOST_TEST(!seen(queues.here(), "a").has_value());
}

void a_withdrawn_place_keeps_its_order_only(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.here().must_stand("a", "bob");
    const place carol = queues.here().must_stand("a", "carol");
    const auto withdrawn = queues.here().withdraw(bob);
    BOOST_TEST(must_be<place_kept>(withdrawn.answer).position == 1u);
    BOOST_TEST(must_be<place_kept>(withdrawn.answer).retry_after.count() > 25'000);
    BOOST_TEST(withdrawn.wakes.empty());
    BOOST_TEST(must_be<queue_standing>(queues.there().stand("a", "dave").answer).position == 3u);

    const auto wakes = queues.here().must_release("a", "alice");
    BOOST_TEST(wakes.size() == 1u);
    BOOST_TEST(concerns(wakes, queues.here().wake_of(carol)));
    must_be_kept(queues.here().claim(bob, "bob"));
    queues.here().must_claim(carol, "carol");
}

void a_kept_place_holds_nobody_back(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.here().must_stand("a", "bob");
    queues.here().withdraw(bob);
    BOOST_TEST(queues.here().must_release("a", "alice").empty());
    BOOST_TEST(!seen(queues.here(), "a").has_value());
    BOOST_TEST(!queues.here().hand_over("a").ends_in.has_value());

    BOOST_TEST((fast_acquire(queues.there(), "a", "carol") == acquire_result::awaited));
    must_be<queue_grant>(queues.there().ask("a", "carol").answer);
    BOOST_TEST(must_be<queue_standing>(queues.there().stand("a", "bob").answer).position == 1u);
}

void a_kept_place_is_taken_over_on_another_node(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.here().must_stand("a", "bob");
    const place carol = queues.here().must_stand("a", "carol");
    queues.here().withdraw(bob);
    queues.pass(1'000ms);
    const auto outcome = queues.there().stand("a", "bob");
    const place again = must_be<queue_standing>(outcome.answer).place;

    BOOST_TEST(again.number() == bob.number());
    BOOST_TEST(again.attachment() > bob.attachment());
    BOOST_TEST(must_be<queue_standing>(outcome.answer).position == 1u);
    const auto wakes = queues.here().must_release("a", "alice");
    BOOST_TEST(concerns(wakes, queues.there().wake_of(again)));
    queues.here().must_not_be_offered(carol, "carol");
    queues.there().must_claim(again, "bob");
}

void a_place_is_kept_for_five_seconds(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.here().must_stand("a", "bob");
    const place carol = queues.here().must_stand("a", "carol");
    queues.here().withdraw(bob);
    queues.pass(5'010ms);
    const place again = queues.here().must_stand("a", "bob");
    BOOST_TEST(again.number() > carol.number());
    queues.here().must_be_gone(bob, "bob");
}

void an_older_request_is_told_and_changes_nothing(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place older = queues.here().must_stand("a", "bob");
    const auto outcome = queues.there().stand("a", "bob");
    const place newer = must_be<queue_standing>(outcome.answer).place;
    BOOST_TEST(newer.number() == older.number());
    BOOST_TEST(newer.attachment() > older.attachment());
    BOOST_TEST(must_be<queue_standing>(outcome.answer).position == 1u);
    BOOST_TEST(concerns(outcome.wakes, queues.here().wake_of(older)));

    queues.here().must_be_gone(older, "bob");
    const auto late = queues.here().withdraw(older);
    must_be<place_gone>(late.answer);
    queues.here().must_release("a", "alice");
    must_be<place_gone>(queues.here().withdraw(older).answer);
    queues.here().must_be_gone(older, "bob");
    queues.there().must_claim(newer, "bob");
}

void asking_again_takes_an_offer_at_once(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place older = queues.here().must_stand("a", "bob");
    queues.here().must_release("a", "alice");
    const auto outcome = queues.there().stand("a", "bob");

    const lock grant = must_be<queue_grant>(outcome.answer).lock;
    BOOST_TEST((grant.expires_at() - grant.acquired_at() == std::chrono::seconds(ttl_seconds)));
    BOOST_TEST(concerns(outcome.wakes, queues.here().wake_of(older)));
    queues.here().must_be_gone(older, "bob");
    must_be<place_gone>(queues.here().withdraw(older).answer);
    BOOST_TEST((seen(queues.here(), "a")->fencing_token() == grant.fencing_token()));
}

void a_withdrawal_passes_an_offer_on(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.here().must_stand("a", "bob");
    const place carol = queues.there().must_stand("a", "carol");
    queues.here().must_release("a", "alice");
    const auto withdrawn = queues.here().withdraw(bob);
    BOOST_TEST(must_be<place_kept>(withdrawn.answer).position == 1u);
    BOOST_TEST(concerns(withdrawn.wakes, queues.there().wake_of(carol)));
    queues.there().must_claim(carol, "carol");
    queues.there().must_release("a", "carol");

    // With nobody behind it the lock is free.
    queues.here().leases().must_acquire("b", "alice", ttl_seconds);
    const place alone = queues.here().must_stand("b", "bob");
    queues.here().must_release("b", "alice");
    const auto freed = queues.here().withdraw(alone);
    BOOST_TEST(must_be<place_kept>(freed.answer).retry_after.count() == 1);
    BOOST_TEST(freed.wakes.empty());
    BOOST_TEST(!seen(queues.here(), "b").has_value());
}

void leaving_gives_the_place_up(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.here().must_stand("a", "bob");
    const place carol = queues.here().must_stand("a", "carol");
    const auto left = queues.there().leave("a", "bob");
    BOOST_TEST((left.result == leave_result::left));
    BOOST_TEST(concerns(left.wakes, queues.here().wake_of(bob)));
    queues.here().must_be_gone(bob, "bob");
    must_be<place_gone>(queues.here().withdraw(bob).answer);
    BOOST_TEST((queues.there().leave("a", "bob").result == leave_result::not_found));

    queues.here().withdraw(carol);
    BOOST_TEST((queues.there().leave("a", "carol").result == leave_result::left));
    const auto fast = queues.here().leases().release({resource("a"), owner("alice")});
    BOOST_TEST((*fast == release_result::released));
}

void leaving_passes_an_offer_on(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.here().must_stand("a", "bob");
    const place carol = queues.there().must_stand("a", "carol");
    queues.here().must_release("a", "alice");
    const auto left = queues.here().leave("a", "bob");
    BOOST_TEST((left.result == leave_result::left));
    BOOST_TEST(concerns(left.wakes, queues.there().wake_of(carol)));
    queues.here().must_be_gone(bob, "bob");
    queues.there().must_claim(carol, "carol");
}

void without_a_place_there_is_nothing_to_leave(queue_under_test& queues) {
    BOOST_TEST((queues.here().leave("never held", "bob").result == leave_result::not_found));
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.here().must_stand("a", "bob");
    BOOST_TEST((queues.here().leave("a", "alice").result == leave_result::not_found));
    BOOST_TEST((queues.here().leave("a", "carol").result == leave_result::not_found));
    queues.here().must_release("a", "alice");
    queues.here().must_claim(bob, "bob");
    BOOST_TEST((queues.here().leave("a", "bob").result == leave_result::not_found));
    BOOST_TEST((seen(queues.here(), "a")->owner().text() == "bob"));
}

void a_line_has_so_many_places_kept_ones_counted(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    std::vector<place> places;
    for (std::size_t each = 0; each < queue_under_test::places_max; ++each)
        places.push_back(queues.here().must_stand("a", "waiter " + std::to_string(each)));
    must_be<domain::queue_full>(queues.there().stand("a", "one more").answer);
    queues.here().withdraw(places.back());
    must_be<domain::queue_full>(queues.there().stand("a", "one more").answer);
    must_be<queue_refusal>(queues.there().ask("a", "one more").answer);

    // Who has a place keeps it; who leaves makes room; so does time.
    BOOST_TEST(queues.there().must_stand("a", "waiter 0").number() == places.front().number());
    queues.here().leave("a", "waiter 1");
    queues.there().must_stand("a", "one more");
    must_be<domain::queue_full>(queues.there().stand("a", "and one").answer);
    queues.pass(5'010ms);
    queues.there().must_stand("a", "and one");
}

void what_was_not_delivered_is_given_back(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.here().must_stand("a", "bob");
    const place carol = queues.there().must_stand("a", "carol");
    queues.here().must_release("a", "alice");
    const lock grant = queues.here().must_claim(bob, "bob", "k1");
    const auto given = queues.here().give_back(grant);

    BOOST_TEST((given.result == release_result::released));
    BOOST_TEST(concerns(given.wakes, queues.there().wake_of(carol)));
    const lock next = queues.there().must_claim(carol, "carol");
    BOOST_TEST((queues.here().give_back(grant).result != release_result::released));
    BOOST_TEST((seen(queues.here(), "a")->fencing_token() == next.fencing_token()));
}

void what_was_granted_at_once_is_given_back(queue_under_test& queues) {
    const lock grant = must_be<queue_grant>(queues.here().stand("a", "alice").answer).lock;
    BOOST_TEST((queues.here().give_back(grant).result == release_result::released));
    BOOST_TEST(!seen(queues.here(), "a").has_value());

    acquire_command would_wait = asking("a", "alice", "k1");
    would_wait.make_returnable();
    const auto free = queues.here().leases().acquire(acquire_command(would_wait));
    BOOST_REQUIRE((free && free->result() == acquire_result::granted));
    BOOST_TEST((queues.here().give_back(free->grant()).result == release_result::released));
    BOOST_TEST(!seen(queues.here(), "a").has_value());

    // Not so what did not wait: its answer says nothing of the kind.
    const lock asked = queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    BOOST_TEST((queues.here().give_back(asked).result != release_result::released));
    BOOST_TEST(seen(queues.here(), "a").has_value());
}

void a_replayed_grant_is_not_given_back(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.here().must_stand("a", "bob");
    queues.here().must_release("a", "alice");
    const lock grant = queues.here().must_claim(bob, "bob", "k1");
    const auto replay = queues.there().leases().acquire(asking("a", "bob", "k1"));
    BOOST_REQUIRE(replay);
    // A store may leave the repetition to the queue, which notes that the grant has been answered again.
    const lock again = replay->result() == acquire_result::awaited
                           ? must_be<queue_grant>(queues.there().stand("a", "bob", "k1").answer).lock
                           : replay->grant();
    BOOST_TEST((again.fencing_token() == grant.fencing_token()));

    BOOST_TEST((queues.here().give_back(grant).result != release_result::released));
    const auto held = seen(queues.here(), "a");
    BOOST_REQUIRE(held.has_value());
    BOOST_TEST((held->fencing_token() == grant.fencing_token()));
}

void a_replayed_grant_is_not_given_back_though_the_lock_was_free(queue_under_test& queues) {
    acquire_command would_wait = asking("a", "bob", "k1");
    would_wait.make_returnable();
    const auto first = queues.here().leases().acquire(acquire_command(would_wait));
    BOOST_REQUIRE((first && first->result() == acquire_result::granted));
    const auto replay = queues.there().leases().acquire(asking("a", "bob", "k1"));
    BOOST_REQUIRE(replay);
    const lock again = replay->result() == acquire_result::awaited
                           ? must_be<queue_grant>(queues.there().stand("a", "bob", "k1").answer).lock
                           : replay->grant();
    BOOST_TEST((again.fencing_token() == first->grant().fencing_token()));
    BOOST_TEST((queues.here().give_back(first->grant()).result != release_result::released));
    BOOST_TEST(seen(queues.here(), "a").has_value());
}

void a_renewed_grant_is_not_given_back(queue_under_test& queues) {
    const lock grant = must_be<queue_grant>(queues.here().stand("a", "alice").answer).lock;
    BOOST_REQUIRE((queues.there().leases().renew({resource("a"), owner("alice"), seconds(60)})->result() ==
                   renew_result::renewed));
    BOOST_TEST((queues.here().give_back(grant).result != release_result::released));
    BOOST_TEST(seen(queues.here(), "a").has_value());
}

void another_grant_is_not_given_back(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.here().must_stand("a", "bob");
    queues.here().must_release("a", "alice");
    const lock grant = queues.here().must_claim(bob, "bob");
    const lock again = must_be<queue_grant>(queues.there().stand("a", "bob").answer).lock;
    BOOST_TEST((again.fencing_token() > grant.fencing_token()));
    BOOST_TEST((queues.here().give_back(grant).result != release_result::released));
    BOOST_TEST((seen(queues.here(), "a")->fencing_token() == again.fencing_token()));
}

void a_repeated_claim_is_answered_under_its_key(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.here().must_stand("a", "bob");
    queues.here().must_release("a", "alice");
    const lock grant = queues.here().must_claim(bob, "bob", "k1");
    queues.pass(5ms);
    const lock again = queues.here().must_claim(bob, "bob", "k1");
    BOOST_TEST((again.fencing_token() == grant.fencing_token()));
    BOOST_TEST((again.acquired_at() == grant.acquired_at()));
    BOOST_TEST((again.expires_at() == grant.expires_at()));
    must_be<place_gone>(queues.here().claim(bob, "bob", "k2"));
    must_be<place_gone>(queues.here().claim(bob, "bob"));
}

void standing_under_the_key_of_a_live_grant_repeats_it(queue_under_test& queues) {
    const auto first = queues.here().leases().must_acquire("a", "alice", ttl_seconds, "k1");
    queues.there().must_stand("a", "bob");
    const lock again = must_be<queue_grant>(queues.there().stand("a", "alice", "k1").answer).lock;
    BOOST_TEST((again.fencing_token() == first.fencing_token()));
    BOOST_TEST((again.expires_at() == first.expires_at()));
    must_be<queue_standing>(queues.there().stand("a", "bob", "k1").answer);
}

void a_dead_nodes_places_are_passed_over_and_kept(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.there().must_stand("a", "bob");
    const place carol = queues.here().must_stand("a", "carol");
    queues.kill_there();
    queues.pass(std::chrono::seconds(store::node_dead_after) + 10ms);

    const auto wakes = queues.here().must_release("a", "alice");
    BOOST_TEST(concerns(wakes, queues.here().wake_of(carol)));
    queues.here().must_claim(carol, "carol");
    const place again = queues.here().must_stand("a", "bob");
    BOOST_TEST(again.number() == bob.number());
}

void wakes_reach_the_node(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.there().must_stand("a", "bob");
    queues.here().queue().announce(queues.here().must_release("a", "alice"));
    BOOST_TEST(queues.there().hears_of(bob));
}

void a_moved_end_reaches_every_node_that_waits(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    const place bob = queues.there().must_stand("a", "bob");
    const place carol = queues.here().must_stand("a", "carol");
    BOOST_REQUIRE(queues.here().leases().renew({resource("a"), owner("alice"), seconds(60)}));
    queues.here().queue().announce_moved(resource("a"));
    BOOST_TEST(queues.there().hears_of(bob));
    BOOST_TEST(queues.here().hears_of(carol));
}

void a_survey_has_the_living_places_of_its_node(queue_under_test& queues) {
    queues.here().leases().must_acquire("a", "alice", ttl_seconds);
    queues.here().leases().must_acquire("b", "alice", 20);
    const place offered = queues.here().must_stand("a", "bob");
    const place waits = queues.here().must_stand("b", "bob");
    const place kept = queues.here().must_stand("b", "carol");
    const place elsewhere = queues.there().must_stand("a", "dave");
    queues.here().withdraw(kept);
    queues.here().must_release("a", "alice");

    auto places = queues.here().survey();
    BOOST_REQUIRE(places.size() == 2u);
    std::sort(places.begin(), places.end(), [](const surveyed_place& left, const surveyed_place& right) {
        return left.place.number() < right.place.number();
    });
    BOOST_TEST((places[0].place == offered));
    BOOST_TEST(places[0].offered);
    BOOST_TEST((places[1].place == waits));
    BOOST_TEST(!places[1].offered);
    BOOST_TEST(places[1].ends_in.count() > 10'000);
    BOOST_TEST(places[1].ends_in.count() <= 20'000);
    const auto there = queues.there().survey();
    BOOST_REQUIRE(there.size() == 1u);
    BOOST_TEST((there[0].place == elsewhere));
}

}  // namespace conformance
}  // namespace holdfast::tests
