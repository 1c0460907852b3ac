// What somebody tries who wants a lock that is not theirs, over real nodes.

#include "support/shared_nodes.hpp"
#include "support/wait_until.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <barrier>
#include <iterator>

namespace {

using namespace holdfast::tests;
using namespace std::chrono_literals;

constexpr int ttl = 60;

/// Alice holds a fresh lock at one node; Bob asks another.
struct held_by_alice : two_users {
    std::string resource = fresh_name("attack");
    reply grant = alice.acquire(resource, "alice", ttl);

    held_by_alice() { BOOST_REQUIRE(grant.status == 200 && grant.acquired()); }

    void check_alice_still_holds() {
        const reply seen = bob.look(resource);
        BOOST_REQUIRE_MESSAGE(seen.status == 200, seen.text());
        BOOST_TEST(seen.lease().owner == "alice");
        BOOST_TEST(seen.token() == grant.token());
        BOOST_TEST(seen.lease().acquired_at == grant.lease().acquired_at);
        BOOST_TEST(seen.lease().expires_at == grant.lease().expires_at);
    }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(attacks, two_users)

BOOST_FIXTURE_TEST_CASE(ATK_01_acquire_what_another_holds, held_by_alice) {
    const reply refused = bob.acquire(resource, "bob", 30);

    BOOST_REQUIRE_MESSAGE(refused.status == 200, refused.text());
    BOOST_TEST(!refused.acquired());
    BOOST_TEST(refused.retry_after_ms() >= 1);
    BOOST_TEST(refused.retry_after_ms() <= ttl * 1000);
    BOOST_TEST(outside_the_contract(refused) == "");
    check_alice_still_holds();
}

BOOST_FIXTURE_TEST_CASE(ATK_02_release_what_another_holds, held_by_alice) {
    for (const auto& token : {std::optional<std::int64_t>(), std::optional(grant.token())}) {
        for (const reply& refused : {bob.release(resource, "bob", token), bob.post_release(resource, "bob", token)}) {
            BOOST_TEST(refused.status == 403, refused.text());
            BOOST_TEST(refused.problem() == "forbidden");
            BOOST_TEST(outside_the_contract(refused) == "");
        }
    }
    check_alice_still_holds();
}

BOOST_AUTO_TEST_CASE(ATK_03_take_over_after_expiry) {
    const std::string resource = fresh_name("attack");
    const reply first = alice.acquire(resource, "alice", 1);
    BOOST_REQUIRE(first.acquired());

    reply second;
    const bool taken = wait_until(5s, [&] {
        second = bob.acquire(resource, "bob", ttl);
        return second.status != 200 || second.acquired();
    });

    BOOST_REQUIRE_MESSAGE(taken && second.status == 200, second.text());
    BOOST_TEST(second.token() > first.token());
    BOOST_TEST(second.lease().acquired_at >= first.lease().expires_at);
    BOOST_TEST(alice.release(resource, "alice", first.token()).status == 403);
    BOOST_TEST(alice.renew(resource, "alice", ttl, first.token()).status == 403);
    BOOST_TEST(alice.look(resource).lease().owner == "bob");
}

BOOST_FIXTURE_TEST_CASE(ATK_04_renew_what_another_holds, held_by_alice) {
    for (const auto& token : {std::optional<std::int64_t>(), std::optional(grant.token())}) {
        const reply refused = bob.renew(resource, "bob", 3600, token);
        BOOST_TEST(refused.status == 403, refused.text());
        BOOST_TEST(refused.problem() == "forbidden");
    }
    check_alice_still_holds();
}

BOOST_FIXTURE_TEST_CASE(ATK_05_zero_and_negative_ttl, held_by_alice) {
    const std::vector<std::pair<std::string, std::string>> out_of_range{{"ttl_seconds", "out_of_range"}};
    for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
        const std::string free = fresh_name("attack");
        const reply acquired = bob.acquire(free, "bob", bad);
        BOOST_TEST(acquired.status == 422, acquired.text());
        BOOST_TEST((errors_of(acquired) == out_of_range), acquired.text());
        BOOST_TEST(bob.look(free).status == 404);

        const reply renewed = alice.renew(resource, "alice", bad, grant.token());
        BOOST_TEST(renewed.status == 422, renewed.text());
        BOOST_TEST((errors_of(renewed) == out_of_range), renewed.text());
    }
    check_alice_still_holds();
}

BOOST_FIXTURE_TEST_CASE(ATK_06_sql_in_the_resource_name, held_by_alice) {
    const std::array<std::string, 9> injections{"'; DROP TABLE holdfast.distributed_locks; --",
                                                "\"; DELETE FROM distributed_locks; --",
                                                "' OR '1'='1",
                                                "x' || pg_sleep(5) || '",
                                                "$1",
                                                "{a,b}",
                                                "NULL",
                                                "\\",
                                                "%' ESCAPE '%"};
    for (const std::string& injection : injections) {
        const reply granted = bob.acquire(injection, injection, ttl);
        BOOST_REQUIRE_MESSAGE(granted.status == 200 && granted.acquired(), injection << ": " << granted.text());
        BOOST_TEST(granted.lease().resource == injection);
        BOOST_TEST(granted.lease().owner == injection);
        BOOST_TEST(granted.duration() < 5s);
        BOOST_TEST(alice.look(injection).lease().owner == injection);
        BOOST_TEST(alice.acquire(injection, "alice", ttl).acquired() == false);
        BOOST_TEST(alice.renew(injection, injection, ttl, granted.token()).status == 200);
        BOOST_TEST(alice.release(injection, injection, granted.token()).status == 204);
        BOOST_TEST(bob.look(injection).status == 404);
    }
    check_alice_still_holds();
}

BOOST_FIXTURE_TEST_CASE(ATK_07_empty_and_blank_owner, held_by_alice) {
    for (const std::string blank : {"", " ", "   ", "\t", " \r\n\t "}) {
        const std::string free = fresh_name("attack");
        for (const reply& refused :
             {bob.acquire(free, blank, ttl), bob.renew(resource, blank, ttl), bob.release(resource, blank),
              bob.post_release(resource, blank), bob.acquire(resource, blank, ttl)}) {
            BOOST_TEST(refused.status == 422, refused.text());
            const auto errors = errors_of(refused);
            BOOST_TEST((errors.size() == 1 && errors.front().first == "owner"), refused.text());
        }
        BOOST_TEST(bob.look(free).status == 404);
    }
    check_alice_still_holds();
}

BOOST_FIXTURE_TEST_CASE(ATK_08_ttl_as_string_and_as_float, held_by_alice) {
    const std::vector<std::pair<std::string, std::string>> invalid{{"ttl_seconds", "invalid"}};
    for (const std::string literal : {"\"30\"", "30.0", "30.5", "3e1", "true", "null", "[30]", "{}"}) {
        const std::string free = fresh_name("attack");
        const reply acquired =
            bob.request("POST", "/locks/" + free, R"({"owner":"bob","ttl_seconds":)" + literal + "}");
        BOOST_TEST(acquired.status == 422, literal << ": " << acquired.text());
        BOOST_TEST((errors_of(acquired) == invalid), literal << ": " << acquired.text());
        BOOST_TEST(bob.look(free).status == 404);

        const reply renewed = alice.request("POST", "/locks/" + path_segment(resource) + "/renew",
                                            R"({"owner":"alice","ttl_seconds":)" + literal + "}");
        BOOST_TEST(renewed.status == 422, literal << ": " << renewed.text());
    }
    check_alice_still_holds();
}

BOOST_FIXTURE_TEST_CASE(ATK_09_the_owner_acquires_again, held_by_alice) {
    const reply again = bob.acquire(resource, "alice", 120);

    BOOST_REQUIRE_MESSAGE(again.status == 200 && again.acquired(), again.text());
    BOOST_TEST(again.token() > grant.token());
    BOOST_TEST(again.lease().acquired_at > grant.lease().acquired_at);
    BOOST_TEST(again.lease().expires_at > grant.lease().expires_at);
    // The old twin under the same name is fenced off.
    BOOST_TEST(alice.renew(resource, "alice", ttl, grant.token()).status == 403);
    BOOST_TEST(alice.release(resource, "alice", grant.token()).status == 403);
    BOOST_TEST(alice.look(resource).token() == again.token());
    BOOST_TEST(bob.release(resource, "alice", again.token()).status == 204);
}

BOOST_AUTO_TEST_CASE(ATK_10_two_owners_race_for_a_new_resource) {
    constexpr int rounds = 250;
    std::vector<std::string> resources;
    for (int i = 0; i < rounds; ++i)
        resources.push_back(fresh_name("race"));
    std::array<std::vector<reply>, 2> replies;
    std::barrier start(2);

    in_parallel(2, [&](std::size_t side) {
        lock_client& client = side == 0 ? alice : bob;
        for (const std::string& resource : resources) {
            start.arrive_and_wait();
            replies[side].push_back(client.acquire(resource, side == 0 ? "alice" : "bob", ttl));
        }
    });

    for (int round = 0; round < rounds; ++round) {
        const reply& first = replies[0][static_cast<std::size_t>(round)];
        const reply& second = replies[1][static_cast<std::size_t>(round)];
        BOOST_REQUIRE_MESSAGE(first.status == 200 && second.status == 200, first.text() << " " << second.text());
        BOOST_TEST_REQUIRE(first.acquired() != second.acquired(), first.text() << " " << second.text());
        const reply& winner = first.acquired() ? first : second;
        const reply seen = alice.look(resources[static_cast<std::size_t>(round)]);
        BOOST_TEST(seen.lease().owner == winner.lease().owner);
        BOOST_TEST(seen.token() == winner.token());
    }
}

BOOST_AUTO_TEST_CASE(ATK_11_look_at_an_absent_or_expired_lock) {
    const std::string resource = fresh_name("attack");
    const auto check_absent = [&](const reply& seen) {
        BOOST_TEST(seen.status == 404, seen.text());
        BOOST_TEST(seen.problem() == "not-found");
        BOOST_TEST(outside_the_contract(seen) == "");
    };
    check_absent(alice.look(resource));

    BOOST_REQUIRE(alice.acquire(resource, "alice", 1).acquired());
    BOOST_TEST(bob.look(resource).status == 200);
    BOOST_TEST(wait_until(5s, [&] { return bob.look(resource).status == 404; }));
    check_absent(bob.look(resource));
    check_absent(alice.look(resource));
    check_absent(bob.release(resource, "alice"));
    check_absent(bob.renew(resource, "alice", ttl));

    BOOST_REQUIRE(alice.acquire(resource, "alice", ttl).acquired());
    BOOST_REQUIRE(alice.release(resource, "alice").status == 204);
    check_absent(bob.look(resource));
}

BOOST_AUTO_TEST_CASE(ATK_12_resource_names_that_are_too_long) {
    const std::string longest(255, 'n');
    BOOST_TEST(alice.acquire(longest, "alice", ttl).status == 200);
    // 255 bytes that take 765 in the path.
    std::string encoded;
    for (int i = 0; i < 85; ++i)
        encoded += "\u20ac";
    BOOST_TEST(alice.acquire(encoded, "alice", ttl).status == 200);

    const std::vector<std::pair<std::string, std::string>> too_long{{"resource", "too_long"}};
    for (const reply& refused : {alice.acquire(longest + "n", "alice", ttl), alice.look(longest + "n"),
                                 alice.release(longest + "n", "alice"), alice.renew(longest + "n", "alice", ttl)}) {
        BOOST_TEST(refused.status == 422, refused.text());
        BOOST_TEST((errors_of(refused) == too_long), refused.text());
    }
    for (const std::size_t size : {std::size_t{8192}, std::size_t{10'000'000}}) {
        const reply refused = alice.acquire(std::string(size, 'n'), "alice", ttl);
        BOOST_TEST(refused.status == 414, refused.text());
        BOOST_TEST(refused.problem() == "uri-too-long");
    }
    BOOST_TEST(alice.look(longest).status == 200);
}

BOOST_AUTO_TEST_SUITE_END()
