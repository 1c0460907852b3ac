#include "support/lease_store_conformance.hpp"

#include "holdfast/domain/limits.hpp"

#include "support/wait_for.hpp"

#include <optional>
#include <stdexcept>
#include <vector>

namespace holdfast::tests {

using namespace domain;
using std::chrono::milliseconds;

namespace {

template <class Value>
Value valid(validated<Value> value) {
    if (!value) throw std::logic_error("a test made an invalid value");
    return *std::move(value);
}

store::deadline deadline_of(const store_under_test& under_test) {
    return std::chrono::steady_clock::now() + under_test.budget;
}

}  // namespace

domain::resource_name resource(const std::string& text) {
    return valid(resource_name::parse(text));
}
domain::owner_name owner(const std::string& text) {
    return valid(owner_name::parse(text));
}
domain::ttl seconds(std::int64_t count) {
    return valid(ttl::parse(count, limits::ttl_seconds_max_ceiling));
}
domain::fencing_token token(std::int64_t number) {
    return valid(fencing_token::parse(number));
}
domain::idempotency_key key(const std::string& text) {
    return valid(idempotency_key::parse(text));
}

result<acquire_outcome> store_under_test::acquire(acquire_command command) {
    return wait_for(context(), store().acquire(std::move(command), deadline_of(*this)));
}

result<renew_outcome> store_under_test::renew(renew_command command) {
    return wait_for(context(), store().renew(std::move(command), deadline_of(*this)));
}

result<release_result> store_under_test::release(release_command command) {
    return wait_for(context(), store().release(std::move(command), deadline_of(*this)));
}

result<look_outcome> store_under_test::look(look_command command) {
    return wait_for(context(), store().look(std::move(command), deadline_of(*this)));
}

lock store_under_test::must_acquire(const std::string& name, const std::string& who, std::int64_t ttl_seconds,
                                    const std::string& key_text) {
    std::optional<idempotency_key> with;
    if (!key_text.empty()) with = key(key_text);
    const auto answer = acquire({resource(name), owner(who), seconds(ttl_seconds), with});
    BOOST_REQUIRE(answer);
    BOOST_REQUIRE(answer->result() == acquire_result::granted);
    return answer->grant();
}

milliseconds store_under_test::must_be_refused(const std::string& name, const std::string& who) {
    const auto answer = acquire({resource(name), owner(who), seconds(30)});
    BOOST_REQUIRE(answer);
    BOOST_REQUIRE(answer->result() == acquire_result::held);
    return answer->retry_after();
}

bool store_under_test::is_held(const std::string& name) {
    const auto answer = look(look_command(resource(name)));
    BOOST_REQUIRE(answer);
    return answer->result() == look_result::found;
}

namespace conformance {

void grants_a_free_lock_for_exactly_the_ttl(store_under_test& store) {
    const lock grant = store.must_acquire("a", "alice", 30);

    BOOST_TEST(grant.resource().text() == "a");
    BOOST_TEST(grant.owner().text() == "alice");
    BOOST_TEST((grant.expires_at() - grant.acquired_at() == std::chrono::seconds(30)));
    BOOST_TEST(grant.fencing_token().number() >= 1);
    BOOST_TEST(grant.expires_in().count() <= 30'000);
    BOOST_TEST(grant.expires_in().count() > 25'000);
}

void refuses_what_another_holds(store_under_test& store) {
    const lock grant = store.must_acquire("a", "alice", 30);
    store.must_be_refused("a", "bob");

    const auto seen = store.look(look_command(resource("a")));
    BOOST_REQUIRE(seen);
    BOOST_REQUIRE(seen->result() == look_result::found);
    BOOST_TEST(seen->lock().owner().text() == "alice");
    BOOST_TEST((seen->lock().fencing_token() == grant.fencing_token()));
    BOOST_TEST((seen->lock().expires_at() == grant.expires_at()));
}

void says_when_to_ask_again(store_under_test& store) {
    store.must_acquire("a", "alice", 2);
    const milliseconds retry_after = store.must_be_refused("a", "bob");
    BOOST_TEST(retry_after.count() >= 1);
    BOOST_TEST(retry_after.count() <= 2'000);

    store.pass(retry_after);
    store.must_acquire("a", "bob", 30);
}

void grants_after_expiry_to_another_owner(store_under_test& store) {
    const lock first = store.must_acquire("a", "alice", 1);
    store.pass(milliseconds(1'010));
    const lock second = store.must_acquire("a", "bob", 30);

    BOOST_TEST((second.fencing_token() > first.fencing_token()));
    BOOST_TEST((second.acquired_at() >= first.expires_at()));
    BOOST_TEST((second.expires_at() - second.acquired_at() == std::chrono::seconds(30)));
}

void grants_again_to_the_holder_under_a_greater_token(store_under_test& store) {
    const lock first = store.must_acquire("a", "alice", 30);
    store.pass(milliseconds(5));
    const lock second = store.must_acquire("a", "alice", 20);

    BOOST_TEST((second.fencing_token() > first.fencing_token()));
    BOOST_TEST((second.acquired_at() > first.acquired_at()));
    BOOST_TEST((second.expires_at() - second.acquired_at() == std::chrono::seconds(20)));
}

void tokens_grow_over_release_and_expiry(store_under_test& store) {
    std::int64_t last = 0;
    for (int round = 0; round < 3; ++round) {
        const lock released = store.must_acquire("a", "alice", 30);
        BOOST_TEST(released.fencing_token().number() > last);
        BOOST_REQUIRE(store.release({resource("a"), owner("alice")}));
        const lock expiring = store.must_acquire("a", "bob", 1);
        BOOST_TEST((expiring.fencing_token() > released.fencing_token()));
        last = expiring.fencing_token().number();
        store.pass(milliseconds(1'010));
    }
}

void repeats_the_grant_for_the_same_owner_and_key(store_under_test& store) {
    const lock first = store.must_acquire("a", "alice", 30, "k1");
    store.pass(milliseconds(5));
    const lock again = store.must_acquire("a", "alice", 99, "k1");

    BOOST_TEST((again.fencing_token() == first.fencing_token()));
    BOOST_TEST((again.acquired_at() == first.acquired_at()));
    BOOST_TEST((again.expires_at() == first.expires_at()));
    BOOST_TEST((again.expires_in() < first.expires_in()));
}

void shows_a_repeated_grant_as_it_is_now(store_under_test& store) {
    const lock first = store.must_acquire("a", "alice", 30, "k1");
    const auto renewed = store.renew({resource("a"), owner("alice"), seconds(60)});
    BOOST_REQUIRE(renewed);
    BOOST_REQUIRE(renewed->result() == renew_result::renewed);
    const lock again = store.must_acquire("a", "alice", 30, "k1");

    BOOST_TEST((again.fencing_token() == first.fencing_token()));
    BOOST_TEST((again.expires_at() == renewed->lock().expires_at()));
}

void makes_a_new_grant_for_another_key_or_none(store_under_test& store) {
    const lock first = store.must_acquire("a", "alice", 30, "k1");
    const lock other_key = store.must_acquire("a", "alice", 30, "k2");
    const lock no_key = store.must_acquire("a", "alice", 30);

    BOOST_TEST((other_key.fencing_token() > first.fencing_token()));
    BOOST_TEST((no_key.fencing_token() > other_key.fencing_token()));
}

void a_grant_without_key_clears_the_stored_key(store_under_test& store) {
    store.must_acquire("a", "alice", 30, "k1");
    const lock no_key = store.must_acquire("a", "alice", 30);
    const lock again = store.must_acquire("a", "alice", 30, "k1");

    BOOST_TEST((again.fencing_token() > no_key.fencing_token()));
}

void the_key_of_an_ended_grant_makes_a_new_one(store_under_test& store) {
    const lock first = store.must_acquire("a", "alice", 1, "k1");
    store.pass(milliseconds(1'010));
    const lock after_expiry = store.must_acquire("a", "alice", 30, "k1");
    BOOST_REQUIRE(store.release({resource("a"), owner("alice")}));
    const lock after_release = store.must_acquire("a", "alice", 30, "k1");

    BOOST_TEST((after_expiry.fencing_token() > first.fencing_token()));
    BOOST_TEST((after_release.fencing_token() > after_expiry.fencing_token()));
}

void another_owner_under_the_same_key_is_refused(store_under_test& store) {
    store.must_acquire("a", "alice", 30, "k1");
    const auto other = store.acquire({resource("a"), owner("bob"), seconds(30), key("k1")});
    BOOST_REQUIRE(other);
    BOOST_TEST((other->result() == acquire_result::held));
}

void renew_moves_the_end_and_keeps_the_rest(store_under_test& store) {
    const lock grant = store.must_acquire("a", "alice", 30);
    store.pass(milliseconds(20));
    const auto renewed = store.renew({resource("a"), owner("alice"), seconds(60), grant.fencing_token()});

    BOOST_REQUIRE(renewed);
    BOOST_REQUIRE(renewed->result() == renew_result::renewed);
    BOOST_TEST((renewed->lock().acquired_at() == grant.acquired_at()));
    BOOST_TEST((renewed->lock().fencing_token() == grant.fencing_token()));
    BOOST_TEST((renewed->lock().expires_at() >= grant.expires_at() + std::chrono::seconds(30) + milliseconds(15)));
    BOOST_TEST(renewed->lock().expires_in().count() <= 60'000);
    BOOST_TEST(renewed->lock().expires_in().count() > 55'000);
}

void renew_may_shorten(store_under_test& store) {
    const lock grant = store.must_acquire("a", "alice", 600);
    const auto renewed = store.renew({resource("a"), owner("alice"), seconds(1)});
    BOOST_REQUIRE(renewed);
    BOOST_REQUIRE(renewed->result() == renew_result::renewed);
    BOOST_TEST((renewed->lock().expires_at() < grant.expires_at()));
    BOOST_TEST(renewed->lock().expires_in().count() <= 1'000);
}

void renew_refuses_other_owners_and_other_tokens(store_under_test& store) {
    const lock grant = store.must_acquire("a", "alice", 30);
    const auto other_owner = store.renew({resource("a"), owner("bob"), seconds(60)});
    const auto other_owner_right_token = store.renew({resource("a"), owner("bob"), seconds(60), grant.fencing_token()});
    const auto other_token =
        store.renew({resource("a"), owner("alice"), seconds(60), token(grant.fencing_token().number() + 1)});
    const auto token_zero = store.renew({resource("a"), owner("alice"), seconds(60), token(0)});

    for (const auto& answer : {other_owner, other_owner_right_token, other_token, token_zero}) {
        BOOST_REQUIRE(answer);
        BOOST_TEST((answer->result() == renew_result::forbidden));
    }
    const auto seen = store.look(look_command(resource("a")));
    BOOST_REQUIRE(seen);
    BOOST_TEST((seen->lock().expires_at() == grant.expires_at()));
}

void renew_never_revives(store_under_test& store) {
    store.must_acquire("a", "alice", 1);
    store.must_acquire("b", "alice", 30);
    BOOST_REQUIRE(store.release({resource("b"), owner("alice")}));
    store.pass(milliseconds(1'010));

    for (const char* name : {"a", "b", "never held"}) {
        const auto answer = store.renew({resource(name), owner("alice"), seconds(60)});
        BOOST_REQUIRE(answer);
        BOOST_TEST((answer->result() == renew_result::not_found));
        BOOST_TEST(!store.is_held(name));
    }
}

void release_frees_at_once(store_under_test& store) {
    const lock grant = store.must_acquire("a", "alice", 30);
    const auto released = store.release({resource("a"), owner("alice"), grant.fencing_token()});
    BOOST_REQUIRE(released);
    BOOST_TEST((*released == release_result::released));
    BOOST_TEST(!store.is_held("a"));
    const lock next = store.must_acquire("a", "bob", 30);
    BOOST_TEST((next.fencing_token() > grant.fencing_token()));
}

void release_refuses_other_owners_and_other_tokens(store_under_test& store) {
    const lock grant = store.must_acquire("a", "alice", 30);
    const auto other_owner = store.release({resource("a"), owner("bob")});
    const auto other_owner_right_token = store.release({resource("a"), owner("bob"), grant.fencing_token()});
    const auto other_token = store.release({resource("a"), owner("alice"), token(grant.fencing_token().number() + 1)});
    const auto token_zero = store.release({resource("a"), owner("alice"), token(0)});

    for (const auto& answer : {other_owner, other_owner_right_token, other_token, token_zero}) {
        BOOST_REQUIRE(answer);
        BOOST_TEST((*answer == release_result::forbidden));
    }
    BOOST_TEST(store.is_held("a"));
}

void release_of_nothing_is_not_found(store_under_test& store) {
    store.must_acquire("expired", "alice", 1);
    store.must_acquire("released", "alice", 30);
    BOOST_REQUIRE(store.release({resource("released"), owner("alice")}));
    store.pass(milliseconds(1'010));

    for (const char* name : {"expired", "released", "never held"}) {
        const auto answer = store.release({resource(name), owner("alice")});
        BOOST_REQUIRE(answer);
        BOOST_TEST((*answer == release_result::not_found));
    }
}

void look_shows_the_lock_or_nothing(store_under_test& store) {
    BOOST_TEST(!store.is_held("a"));
    const lock grant = store.must_acquire("a", "alice", 1);
    const auto seen = store.look(look_command(resource("a")));
    BOOST_REQUIRE(seen);
    BOOST_REQUIRE(seen->result() == look_result::found);
    BOOST_TEST(seen->lock().resource().text() == "a");
    BOOST_TEST(seen->lock().owner().text() == "alice");
    BOOST_TEST((seen->lock().acquired_at() == grant.acquired_at()));
    BOOST_TEST((seen->lock().expires_at() == grant.expires_at()));
    BOOST_TEST((seen->lock().expires_in() <= grant.expires_in()));
    store.pass(milliseconds(1'010));
    BOOST_TEST(!store.is_held("a"));
}

void resources_are_told_apart_byte_for_byte(store_under_test& store) {
    // Upper and lower case, composed and decomposed, trailing blanks, lookalikes: nine names, nine locks.
    const std::vector<std::string> names{"name",       "Name",  "name ",     " name", "n\u00e4me",
                                         "na\u0308me", "na-me", "nam\u0435", "."};
    for (const std::string& name : names)
        store.must_acquire(name, "owner of " + name, 30);
    for (const std::string& name : names) {
        const auto seen = store.look(look_command(resource(name)));
        BOOST_REQUIRE(seen);
        BOOST_REQUIRE(seen->result() == look_result::found);
        BOOST_TEST(seen->lock().owner().text() == owner("owner of " + name).text());
    }
}

void names_of_every_kind_survive(store_under_test& store) {
    const std::vector<std::string> names{"a/b",  "..",   "a\\b", "\"quoted\"", "it's",       "{a,b}",
                                         "NULL", "null", "%s%n", "\U0001F512", "payment:42", "\u202ertl",
                                         ",",    "{}",   "''",   "\\"};
    for (const std::string& name : names) {
        const lock grant = store.must_acquire(name, name, 30, "key\\\"'{},NULL");
        BOOST_TEST(grant.resource().text() == name);
        const auto seen = store.look(look_command(resource(name)));
        BOOST_REQUIRE(seen);
        BOOST_REQUIRE(seen->result() == look_result::found);
        BOOST_TEST(seen->lock().owner().text() == name);
        BOOST_TEST((store.must_acquire(name, name, 30, "key\\\"'{},NULL").fencing_token() == grant.fencing_token()));
        const auto released = store.release({resource(name), owner(name), grant.fencing_token()});
        BOOST_REQUIRE(released);
        BOOST_TEST((*released == release_result::released));
    }
}

void longest_names_and_ttl(store_under_test& store) {
    const std::string name(limits::resource_bytes_max, 'r');
    const std::string who(limits::owner_bytes_max, 'o');
    const std::string with(limits::idempotency_key_bytes_max, 'k');
    const lock grant = store.must_acquire(name, who, limits::ttl_seconds_max_ceiling, with);

    BOOST_TEST((grant.expires_at() - grant.acquired_at() == std::chrono::seconds(limits::ttl_seconds_max_ceiling)));
    BOOST_TEST((store.must_acquire(name, who, 1, with).fencing_token() == grant.fencing_token()));
}

void sql_in_a_name_is_a_name(store_under_test& store) {
    const std::string name = "'); DROP TABLE distributed_locks; --";
    store.must_acquire(name, name, 30);
    BOOST_TEST(store.is_held(name));
    BOOST_TEST(!store.is_held("'); DROP TABLE distributed_locks; -- "));
}

}  // namespace conformance
}  // namespace holdfast::tests
