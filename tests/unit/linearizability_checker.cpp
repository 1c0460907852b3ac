// The judge of histories, judged: hand-written histories that one lock can have served, and such that it cannot.
#include "support/linearizability.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

namespace {

using namespace holdfast::tests;

constexpr std::int64_t s = 1'000'000;

/// Times are small numbers; the database reads its clock where the test says.
struct history {
    std::vector<lock_call> calls;

    lock_call& add(call_kind kind, std::int64_t called, std::int64_t returned, const std::string& owner,
                   call_answer answer) {
        lock_call call;
        call.kind = kind;
        call.owner = owner;
        call.called_us = called;
        call.returned_us = returned;
        call.answer = answer;
        call.ttl_us = s;
        return calls.emplace_back(call);
    }
    static void show(lock_call& call, const std::string& owner, std::int64_t token, std::int64_t from, std::int64_t to,
                     std::int64_t read) {
        call.shown_owner = owner;
        call.shown_token = token;
        call.acquired_at_us = from;
        call.expires_at_us = to;
        call.expires_in_ms = (to - read) / 1'000;
    }

    /// Granted for a second from `from`.
    void granted(std::int64_t called, std::int64_t returned, const std::string& owner, std::int64_t token,
                 std::int64_t from, const std::string& key = "") {
        auto& call = add(call_kind::acquire, called, returned, owner, call_answer::lease);
        call.key = key;
        show(call, owner, token, from, from + s, from);
    }
    void repeated(std::int64_t called, std::int64_t returned, const std::string& owner, std::int64_t token,
                  std::int64_t from, std::int64_t to, const std::string& key) {
        auto& call = add(call_kind::acquire, called, returned, owner, call_answer::lease);
        call.key = key;
        show(call, owner, token, from, to, returned);
    }
    void refused(std::int64_t called, std::int64_t returned, const std::string& owner, std::int64_t retry_after_ms) {
        add(call_kind::acquire, called, returned, owner, call_answer::refused).retry_after_ms = retry_after_ms;
    }
    /// Stamped at `stamp`.
    void renewed(std::int64_t called, std::int64_t returned, const std::string& owner, std::int64_t token,
                 std::int64_t from, std::int64_t stamp) {
        show(add(call_kind::renew, called, returned, owner, call_answer::lease), owner, token, from, stamp + s, stamp);
    }
    void not_renewed(std::int64_t called, std::int64_t returned, const std::string& owner, call_answer answer,
                     std::optional<std::int64_t> token = {}) {
        add(call_kind::renew, called, returned, owner, answer).token = token;
    }
    void released(std::int64_t called, std::int64_t returned, const std::string& owner,
                  std::optional<std::int64_t> token = {}) {
        add(call_kind::release, called, returned, owner, call_answer::released).token = token;
    }
    void not_released(std::int64_t called, std::int64_t returned, const std::string& owner, call_answer answer,
                      std::optional<std::int64_t> token = {}) {
        add(call_kind::release, called, returned, owner, answer).token = token;
    }
    void saw(std::int64_t called, std::int64_t returned, const std::string& owner, std::int64_t token,
             std::int64_t from, std::int64_t to) {
        show(add(call_kind::look, called, returned, "", call_answer::lease), owner, token, from, to, returned);
    }
    void saw_nothing(std::int64_t called, std::int64_t returned) {
        add(call_kind::look, called, returned, "", call_answer::not_found);
    }
    void lost(call_kind kind, std::int64_t called, std::int64_t final, const std::string& owner,
              const std::string& key = "") {
        add(kind, called, final, owner, call_answer::unknown).key = key;
    }

    history_judgement judged() const { return judge_history(calls); }
};

void check_legal(const history& h) {
    const auto judgement = h.judged();
    BOOST_TEST((judgement.verdict == history_verdict::legal),
               (judgement.verdict == history_verdict::illegal ? "illegal: " : "undecided: ") << judgement.why);
}

void check_illegal(const history& h) {
    const auto judgement = h.judged();
    BOOST_TEST((judgement.verdict == history_verdict::illegal), "explained though it should not be; " << judgement.why);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(linearizability_checker)

BOOST_AUTO_TEST_CASE(one_after_the_other) {
    history h;
    h.saw_nothing(0, 10);
    h.granted(20, 40, "a", 1, 30);
    h.refused(50, 60, "b", 1'000);
    h.saw(70, 80, "a", 1, 30, s + 30);
    h.renewed(90, 110, "a", 1, 30, 100);
    h.not_renewed(120, 130, "b", call_answer::forbidden);
    h.released(140, 160, "a", 1);
    h.saw_nothing(170, 180);
    h.not_released(190, 200, "a", call_answer::not_found);
    h.granted(210, 230, "b", 5, 220);
    check_legal(h);
}

BOOST_AUTO_TEST_CASE(two_holders) {
    history h;
    h.granted(20, 40, "a", 1, 30);
    h.granted(50, 70, "b", 2, 60);
    check_illegal(h);
}

BOOST_AUTO_TEST_CASE(two_holders_at_once) {
    history h;
    h.granted(20, 90, "a", 1, 30);
    h.granted(20, 90, "b", 2, 60);
    check_illegal(h);
}

BOOST_AUTO_TEST_CASE(a_grant_after_the_end_and_one_a_moment_before) {
    for (const std::int64_t early : {0, 1}) {
        history h;
        h.granted(20, 40, "a", 1, 30);
        h.granted(50, s + 90, "b", 2, s + 30 - early);
        early ? check_illegal(h) : check_legal(h);
    }
}

BOOST_AUTO_TEST_CASE(a_renewed_lease_excludes_until_its_new_end) {
    for (const std::int64_t early : {0, 1}) {
        history h;
        h.granted(20, 40, "a", 1, 30);
        h.renewed(500, 520, "a", 1, 30, 510);
        h.granted(600, s + 900, "b", 2, s + 510 - early);
        early ? check_illegal(h) : check_legal(h);
    }
}

BOOST_AUTO_TEST_CASE(a_release_that_overlaps_explains_a_grant_and_a_later_one_does_not) {
    for (const std::int64_t called : {55, 65}) {
        history h;
        h.granted(20, 40, "a", 1, 30);
        h.released(called, 100, "a");
        h.granted(50, 70, "b", 2, 60);
        called < 60 ? check_legal(h) : check_illegal(h);
    }
}

BOOST_AUTO_TEST_CASE(the_owner_may_acquire_again_under_a_greater_token_only) {
    for (const std::int64_t token : {2, 1, 0}) {
        history h;
        h.granted(20, 40, "a", 1, 30);
        h.granted(50, 70, "a", token, 60);
        token == 2 ? check_legal(h) : check_illegal(h);
    }
}

BOOST_AUTO_TEST_CASE(tokens_rise_by_the_time_of_the_grants) {
    history h;
    h.granted(20, 90, "a", 2, 30);
    h.granted(20, 90, "a", 1, 60);
    check_illegal(h);
}

BOOST_AUTO_TEST_CASE(a_token_is_granted_once) {
    history h;
    h.granted(20, 90, "a", 1, 30);
    h.granted(20, 90, "a", 1, 30);
    check_illegal(h);
}

BOOST_AUTO_TEST_CASE(a_grant_is_stamped_between_call_and_return_for_exactly_the_ttl) {
    for (const std::int64_t stamp : {19, 20, 40, 41}) {
        history h;
        h.granted(20, 40, "a", 1, stamp);
        stamp == 20 || stamp == 40 ? check_legal(h) : check_illegal(h);
    }
    history h;
    h.granted(20, 40, "a", 1, 30);
    h.calls[0].expires_at_us += 1;
    check_illegal(h);
}

BOOST_AUTO_TEST_CASE(a_repeated_key_gets_the_same_grant_while_it_lives) {
    history same;
    same.granted(20, 40, "a", 1, 30, "k");
    same.repeated(50, 70, "a", 1, 30, s + 30, "k");
    check_legal(same);

    history other;
    other.granted(20, 40, "a", 1, 30, "k");
    other.granted(50, 70, "a", 2, 60, "k");
    check_illegal(other);

    history ended;
    ended.granted(20, 40, "a", 1, 30, "k");
    ended.repeated(s + 50, s + 70, "a", 1, 30, s + 30, "k");
    check_illegal(ended);

    history anew;
    anew.granted(20, 40, "a", 1, 30, "k");
    anew.granted(s + 50, s + 70, "a", 2, s + 60, "k");
    check_legal(anew);
}

BOOST_AUTO_TEST_CASE(a_repeated_key_shows_the_lease_as_it_is_now) {
    for (const std::int64_t end : {s + 60, s + 30}) {
        history h;
        h.granted(20, 40, "a", 1, 30, "k");
        h.renewed(50, 70, "a", 1, 30, 60);
        h.repeated(80, 90, "a", 1, 30, end, "k");
        end == s + 60 ? check_legal(h) : check_illegal(h);
    }
}

BOOST_AUTO_TEST_CASE(another_key_or_none_is_no_repetition) {
    for (const std::string key : {"", "other"}) {
        history h;
        h.granted(20, 40, "a", 1, 30, "k");
        h.repeated(50, 70, "a", 1, 30, s + 30, key);
        check_illegal(h);
    }
    // A grant without key clears the stored one.
    history h;
    h.granted(20, 40, "a", 1, 30, "k");
    h.granted(50, 70, "a", 2, 60);
    h.granted(80, 100, "a", 3, 90, "k");
    check_legal(h);
    h.calls.back() = h.calls.front();
    h.calls.back().called_us = 80;
    h.calls.back().returned_us = 100;
    check_illegal(h);
}

BOOST_AUTO_TEST_CASE(a_key_belongs_to_its_owner) {
    history h;
    h.granted(20, 40, "a", 1, 30, "k");
    h.repeated(50, 70, "b", 1, 30, s + 30, "k");
    check_illegal(h);
}

BOOST_AUTO_TEST_CASE(two_under_one_key_at_once_get_one_grant) {
    history h;
    h.granted(20, 90, "a", 1, 30, "k");
    h.repeated(20, 80, "a", 1, 30, s + 30, "k");
    check_legal(h);
}

BOOST_AUTO_TEST_CASE(a_refusal_needs_a_living_lease_of_another) {
    history free;
    free.refused(20, 40, "b", 1'000);
    check_illegal(free);

    history own;
    own.granted(20, 40, "a", 1, 30);
    own.refused(50, 70, "a", 1'000);
    check_illegal(own);

    history ended;
    ended.granted(20, 40, "a", 1, 30);
    ended.refused(s + 30, s + 70, "b", 1);
    check_illegal(ended);

    history just;
    just.granted(20, 40, "a", 1, 30);
    just.refused(s + 29, s + 70, "b", 1);
    check_legal(just);

    history released;
    released.granted(20, 40, "a", 1, 30);
    released.released(50, 60, "a");
    released.refused(61, 70, "b", 1'000);
    check_illegal(released);
}

BOOST_AUTO_TEST_CASE(a_refusal_before_the_leader_s_grant_needs_that_grant_to_have_begun) {
    for (const std::int64_t returned : {29, 31}) {
        history h;
        h.granted(20, 90, "a", 1, 30);
        h.refused(20, returned, "b", 1'000);
        returned < 30 ? check_illegal(h) : check_legal(h);
    }
}

BOOST_AUTO_TEST_CASE(retry_after_is_what_is_left) {
    for (const std::int64_t retry : {499, 500, 501}) {
        history h;
        h.granted(0, 40, "a", 1, 30);
        h.refused(500'030 - 200, 500'030 + 100, "b", retry);
        retry == 499 ? check_illegal(h) : check_legal(h);
    }
    history much;
    much.granted(0, 40, "a", 1, 30);
    much.refused(500'030, 500'130, "b", 501);
    check_illegal(much);

    // What was left of the lease before it was renewed.
    history old;
    old.granted(0, 40, "a", 1, 30);
    old.renewed(50'000, 50'100, "a", 1, 30, 50'050);
    old.refused(50'200, 50'300, "b", 950);
    check_illegal(old);
}

BOOST_AUTO_TEST_CASE(not_found_needs_a_moment_without_lease) {
    history h;
    h.granted(20, 40, "a", 1, 30);
    h.saw_nothing(50, 60);
    check_illegal(h);

    for (const std::int64_t until : {s + 29, s + 30}) {
        history end;
        end.granted(20, 40, "a", 1, 30);
        end.saw_nothing(50, until);
        until == s + 30 ? check_legal(end) : check_illegal(end);
        history renew;
        renew.granted(20, 40, "a", 1, 30);
        renew.not_renewed(50, until, "a", call_answer::not_found);
        until == s + 30 ? check_legal(renew) : check_illegal(renew);
    }
}

BOOST_AUTO_TEST_CASE(between_two_leases_there_may_be_nobody) {
    history h;
    h.granted(20, 40, "a", 1, 30);
    h.released(50, 90, "a");
    h.saw_nothing(55, 95);
    h.granted(56, 92, "b", 2, 70);
    check_legal(h);
}

BOOST_AUTO_TEST_CASE(forbidden_needs_another_holder_or_token) {
    history other;
    other.granted(20, 40, "a", 1, 30);
    other.not_released(50, 60, "a", call_answer::forbidden, 7);
    other.not_released(50, 60, "b", call_answer::forbidden, 1);
    check_legal(other);

    history own;
    own.granted(20, 40, "a", 1, 30);
    own.not_released(50, 60, "a", call_answer::forbidden, 1);
    check_illegal(own);

    history none;
    none.not_renewed(50, 60, "a", call_answer::forbidden);
    check_illegal(none);
}

BOOST_AUTO_TEST_CASE(only_the_holder_renews_and_releases) {
    history renewed;
    renewed.granted(20, 40, "a", 1, 30);
    renewed.renewed(50, 70, "b", 1, 30, 60);
    check_illegal(renewed);

    history released;
    released.granted(20, 40, "a", 1, 30);
    released.released(50, 70, "b");
    check_illegal(released);

    history fenced;
    fenced.granted(20, 40, "a", 1, 30);
    fenced.granted(50, 70, "a", 2, 60);
    fenced.released(80, 90, "a", 1);
    check_illegal(fenced);

    history old_renewed;
    old_renewed.granted(20, 40, "a", 1, 30);
    old_renewed.granted(50, 70, "a", 2, 60);
    old_renewed.renewed(80, 100, "a", 1, 30, 90);
    check_illegal(old_renewed);
}

BOOST_AUTO_TEST_CASE(an_ended_lease_is_neither_renewed_nor_released) {
    history renewed;
    renewed.granted(20, 40, "a", 1, 30);
    renewed.renewed(50, s + 70, "a", 1, 30, s + 30);
    check_illegal(renewed);

    history released;
    released.granted(20, 40, "a", 1, 30);
    released.released(s + 30, s + 70, "a");
    check_illegal(released);
}

BOOST_AUTO_TEST_CASE(one_lease_is_released_once) {
    history h;
    h.granted(20, 40, "a", 1, 30);
    h.released(50, 90, "a");
    h.released(50, 90, "a");
    check_illegal(h);
    h.granted(50, 90, "a", 2, 70);
    check_legal(h);
}

BOOST_AUTO_TEST_CASE(a_renew_keeps_token_and_beginning) {
    history token;
    token.granted(20, 40, "a", 1, 30);
    token.renewed(50, 70, "a", 2, 30, 60);
    check_illegal(token);

    history beginning;
    beginning.granted(20, 40, "a", 1, 30);
    beginning.renewed(50, 70, "a", 1, 31, 60);
    check_illegal(beginning);

    history added;  // The end is clock + TTL, not the old end + TTL.
    added.granted(20, 40, "a", 1, 30);
    added.renewed(50, 70, "a", 1, 30, s + 30);
    check_illegal(added);
}

BOOST_AUTO_TEST_CASE(a_look_shows_what_is_so_now) {
    history before_renew;
    before_renew.granted(20, 40, "a", 1, 30);
    before_renew.renewed(50, 70, "a", 1, 30, 60);
    before_renew.saw(80, 90, "a", 1, 30, s + 30);
    check_illegal(before_renew);

    history during_renew;
    during_renew.granted(20, 40, "a", 1, 30);
    during_renew.renewed(50, 90, "a", 1, 30, 60);
    during_renew.saw(75, 80, "a", 1, 30, s + 30);  // Stamped, not yet committed.
    check_legal(during_renew);

    history left;
    left.granted(20, 40, "a", 1, 30);
    left.saw(50, 60, "a", 1, 30, s + 30);
    left.calls.back().expires_in_ms -= 1;
    check_illegal(left);

    history future;
    future.saw(10, 20, "a", 1, 30, s + 30);
    future.granted(25, 40, "a", 1, 30);
    check_illegal(future);
}

BOOST_AUTO_TEST_CASE(an_unknown_acquire_may_have_made_a_grant) {
    history h;
    h.lost(call_kind::acquire, 20, 5 * s, "a", "k");
    h.saw(100, 110, "a", 7, 50, s + 50);
    h.refused(120, 130, "b", 1'000);
    h.repeated(140, 150, "a", 7, 50, s + 50, "k");
    h.renewed(160, 180, "a", 7, 50, 170);
    h.released(190, 200, "a", 7);
    check_legal(h);

    history other_owner = h;
    other_owner.calls[1].shown_owner = "b";
    check_illegal(other_owner);

    history never_asked = h;
    never_asked.calls.erase(never_asked.calls.begin());
    check_illegal(never_asked);

    history before_it_was_asked = h;
    before_it_was_asked.calls[0].called_us = 51;
    check_illegal(before_it_was_asked);

    history after_it_was_final = h;
    after_it_was_final.calls[0].returned_us = 49;
    check_illegal(after_it_was_final);
}

BOOST_AUTO_TEST_CASE(an_unknown_acquire_may_have_done_nothing) {
    history h;
    h.lost(call_kind::acquire, 20, 5 * s, "a");
    h.saw_nothing(100, 110);
    h.granted(120, 140, "b", 3, 130);
    check_legal(h);
}

BOOST_AUTO_TEST_CASE(an_unknown_operation_takes_effect_once) {
    history h;
    h.lost(call_kind::acquire, 20, 5 * s, "a");
    h.saw(100, 110, "a", 7, 50, s + 50);
    h.released(120, 130, "a");
    h.saw(140, 150, "a", 8, 135, s + 135);
    check_illegal(h);
}

BOOST_AUTO_TEST_CASE(an_unknown_release_may_have_freed_the_lock_later) {
    for (const std::int64_t final : {59, 5'000'000}) {
        history h;
        h.granted(20, 40, "a", 1, 30);
        h.lost(call_kind::release, 45, final, "a");
        h.renewed(60, 70, "a", 1, 30, 65);
        h.granted(80, 100, "b", 2, 90);
        final == 59 ? check_illegal(h) : check_legal(h);
    }
}

BOOST_AUTO_TEST_CASE(an_unknown_renew_may_have_moved_the_end) {
    for (const bool asked : {true, false}) {
        history h;
        h.granted(20, 40, "a", 1, 30);
        if (asked) h.lost(call_kind::renew, 500'000, 5 * s, "a");
        h.refused(s + 100, s + 200, "b", 600);
        asked ? check_legal(h) : check_illegal(h);
    }
    // By no more than the TTL from then.
    history h;
    h.granted(20, 40, "a", 1, 30);
    h.lost(call_kind::renew, 500'000, 5 * s, "a");
    h.refused(s + 100, s + 200, "b", 1'001);
    check_illegal(h);
}

BOOST_AUTO_TEST_CASE(unknown_operations_may_follow_each_other_unseen) {
    history h;
    h.granted(20, 40, "a", 1, 30);
    h.lost(call_kind::release, 50, 5 * s, "a");
    h.lost(call_kind::acquire, 50, 5 * s, "b");
    h.lost(call_kind::release, 50, 5 * s, "b");
    h.lost(call_kind::acquire, 50, 5 * s, "c");
    h.not_renewed(100, 110, "a", call_answer::forbidden);
    h.saw(120, 130, "c", 9, 115, s + 115);
    check_legal(h);
    h.calls[3].owner = "c";  // Then nobody can have freed what b held, and c came too late for the first answer.
    check_illegal(h);
}

BOOST_AUTO_TEST_CASE(a_grant_may_be_stamped_anew_before_it_is_answered) {
    history h;
    h.granted(20, 90, "a", 1, 60);
    h.saw(40, 50, "a", 1, 30, s + 30);
    check_legal(h);
    history after;
    after.granted(20, 90, "a", 1, 60);
    after.saw(95, 99, "a", 1, 30, s + 30);
    check_illegal(after);
}

// A lock that serves random commands in some order, with answers recorded as clients would: always legal. The same with
// one answer falsified, almost always not.
BOOST_AUTO_TEST_CASE(random_histories_of_a_true_lock_are_legal_and_falsified_ones_are_not) {
    std::mt19937 random(11);
    const auto below = [&](std::int64_t bound) { return static_cast<std::int64_t>(random() % bound); };
    int found = 0;
    for (int round = 0; round < 60; ++round) {
        history h;
        std::int64_t now = 0, token = 0, from = 0, end = 0;
        std::string owner, key;
        for (int each = 0; each < 150; ++each) {
            now += 2 + below(each % 10 ? 30'000 : 900'000);
            const std::int64_t called = now - below(60'000), returned = now + below(60'000);
            const std::string who(1, static_cast<char>('a' + below(3)));
            const bool live = now < end;
            const auto what = below(8);
            const std::string asked_key = below(2) ? "k" + std::to_string(below(2)) : "";
            const bool lost = below(20) == 0;
            const auto until = lost ? now + 2 * s : returned;
            lock_call call;
            call.owner = who;
            call.called_us = called;
            call.returned_us = until;
            call.ttl_us = s;
            if (what < 4) {
                call.kind = call_kind::acquire;
                call.key = asked_key;
                const bool repeats = live && owner == who && !key.empty() && key == asked_key;
                if (live && owner != who) {
                    call.answer = call_answer::refused;
                    call.retry_after_ms = (end - now + 999) / 1'000;
                } else if (!repeats) {
                    owner = who, key = asked_key, from = now, end = now + s, token += 1 + below(3);
                }
            } else if (what < 7) {
                call.kind = what == 4 ? call_kind::renew : call_kind::release;
                if (below(2)) call.token = token;
                if (!live)
                    call.answer = call_answer::not_found;
                else if (owner != who)
                    call.answer = call_answer::forbidden;
                else if (what == 4)
                    end = now + s;
                else
                    call.answer = call_answer::released, end = now;
            } else {
                call.kind = call_kind::look;
                call.owner.clear();
                if (!live) call.answer = call_answer::not_found;
            }
            if (call.answer == call_answer::unknown) {
                call.answer = call_answer::lease;
                history::show(call, owner, token, from, end, now);
            }
            if (lost) call.answer = call_answer::unknown;
            if (!lost || call.kind != call_kind::look) h.calls.push_back(call);
        }
        check_legal(h);

        // A grant's token that was granted before.
        history falsified = h;
        std::vector<std::size_t> grants;
        for (std::size_t i = 0; i < h.calls.size(); ++i)
            if (h.calls[i].kind == call_kind::acquire && h.calls[i].answer == call_answer::lease) grants.push_back(i);
        if (grants.size() < 2) continue;
        falsified.calls[grants.back()].shown_token = h.calls[grants.front()].shown_token;
        if (h.calls[grants.back()].shown_token == h.calls[grants.front()].shown_token) continue;
        found += falsified.judged().verdict != history_verdict::legal;
    }
    BOOST_TEST(found > 50);
}

BOOST_AUTO_TEST_SUITE_END()
