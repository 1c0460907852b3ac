#include "holdfast/store/standing.hpp"

#include "holdfast/store/memory_store.hpp"

#include "support/lease_store_conformance.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/test/unit_test.hpp>

#include <random>

namespace {

using namespace holdfast;
using namespace holdfast::domain;
using namespace std::chrono_literals;
using store::follow;
using tests::owner;
using tests::resource;
using tests::seconds;
using tests::token;

constexpr timestamp start{1'700'000'000s};

lock held_by(const std::string& who, std::int64_t fencing_token = 7) {
    return lock(resource("r"), owner(who), start, start + 30s, 30'000ms, token(fencing_token));
}

std::optional<idempotency_key> key(const char* text) {
    return text ? std::optional(*idempotency_key::parse(text)) : std::nullopt;
}

/// A lock server of one resource that executes one command after the other, all at one moment until told otherwise.
struct serial_server {
    template <class Outcome>
    static boost::asio::awaitable<void> store_in(std::optional<Outcome>& result,
                                                 boost::asio::awaitable<domain::result<Outcome>> call) {
        auto outcome = co_await std::move(call);
        result.emplace(std::move(outcome.value()));
    }
    template <class Outcome>
    Outcome run(boost::asio::awaitable<domain::result<Outcome>> call) {
        std::optional<Outcome> result;
        boost::asio::co_spawn(context, store_in(result, std::move(call)), boost::asio::detached);
        context.restart();
        context.run();
        return std::move(result.value());
    }
    auto execute(const acquire_command& command) { return run(leases.acquire(command, {})); }
    auto execute(const renew_command& command) { return run(leases.renew(command, {})); }
    auto execute(const release_command& command) { return run(leases.release(command, {})); }
    std::optional<lock> holder() {
        const auto seen = run(leases.look(look_command(resource("r")), {}));
        return seen.result() == look_result::found ? std::optional(seen.lock()) : std::nullopt;
    }

    timestamp now = start;
    boost::asio::io_context context{1};
    store::memory_store leases{[this] { return now; }};
};

bool same(const acquire_outcome& left, const acquire_outcome& right) {
    if (left.result() != right.result()) return false;
    return left.result() == acquire_result::held ? left.retry_after() == right.retry_after()
                                                 : left.grant() == right.grant();
}
bool same(const renew_outcome& left, const renew_outcome& right) {
    return left.result() == right.result();  // Followers are never renewed.
}
bool same(release_result left, release_result right) {
    return left == right;
}

bool writes(const acquire_outcome& outcome) {
    return outcome.result() == acquire_result::granted;
}
bool writes(const renew_outcome& outcome) {
    return outcome.result() == renew_result::renewed;
}
bool writes(release_result outcome) {
    return outcome == release_result::released;
}

using any_command = std::variant<acquire_command, renew_command, release_command>;

any_command random_command(std::mt19937& random, std::int64_t tokens) {
    const std::string who(1, static_cast<char>('a' + random() % 2));
    const auto ttl = seconds(1 + static_cast<std::int64_t>(random() % 3));
    std::optional<fencing_token> named;
    if (random() % 2) named = token(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(tokens + 1)));
    switch (random() % 4) {
        case 0:
            return renew_command(resource("r"), owner(who), ttl, named);
        case 1:
            return release_command(resource("r"), owner(who), named);
        default:
            return acquire_command(resource("r"), owner(who), ttl,
                                   key(std::array{static_cast<const char*>(nullptr), "k1", "k2"}[random() % 3]));
    }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(standing)

BOOST_AUTO_TEST_CASE(behind_a_holder_others_are_refused_with_what_is_left_rounded_up) {
    const auto after = store::standing::held(held_by("alice"), start + 1'000us);

    const auto refused = follow(after, acquire_command(resource("r"), owner("bob"), seconds(5)));
    BOOST_REQUIRE(refused.has_value());
    BOOST_TEST((refused->result() == acquire_result::held));
    BOOST_TEST((refused->retry_after() == 29'999ms));
    BOOST_TEST((follow(store::standing::held(held_by("alice"), start + 1us),
                       acquire_command(resource("r"), owner("bob"), seconds(5)))
                    ->retry_after() == 30'000ms));
    BOOST_TEST(
        (follow(after, renew_command(resource("r"), owner("bob"), seconds(5)))->result() == renew_result::forbidden));
    BOOST_TEST((*follow(after, release_command(resource("r"), owner("bob"))) == release_result::forbidden));
}

BOOST_AUTO_TEST_CASE(the_holder_itself_is_not_answered_from_memory_unless_it_repeats_its_key) {
    const auto after = store::standing::held(held_by("alice"), start, key("k"));
    const auto again = [](const char* which) {
        return acquire_command(resource("r"), owner("alice"), seconds(5), key(which));
    };
    BOOST_TEST((follow(after, again("k"))->grant() == held_by("alice")));
    BOOST_TEST(!follow(after, again("other")).has_value());
    BOOST_TEST(!follow(after, again(nullptr)).has_value());
    BOOST_TEST(!follow(store::standing::held(held_by("alice"), start), again(nullptr)).has_value());
    BOOST_TEST(!follow(store::standing::held(held_by("alice"), start), again("k")).has_value());
    BOOST_TEST(!follow(after, renew_command(resource("r"), owner("alice"), seconds(5))).has_value());
    BOOST_TEST(!follow(after, release_command(resource("r"), owner("alice"), token(7))).has_value());
}

BOOST_AUTO_TEST_CASE(a_wrong_token_is_forbidden_and_a_free_resource_has_no_holder) {
    const auto after = store::standing::held(held_by("alice"), start);
    BOOST_TEST((follow(after, renew_command(resource("r"), owner("alice"), seconds(5), token(6)))->result() ==
                renew_result::forbidden));
    BOOST_TEST((*follow(after, release_command(resource("r"), owner("alice"), token(6))) == release_result::forbidden));

    const auto free = store::standing::free();
    BOOST_TEST(
        (follow(free, renew_command(resource("r"), owner("alice"), seconds(5)))->result() == renew_result::not_found));
    BOOST_TEST((*follow(free, release_command(resource("r"), owner("alice"))) == release_result::not_found));
    BOOST_TEST(!follow(free, acquire_command(resource("r"), owner("alice"), seconds(5))).has_value());
}

// Exactly where serial execution says the same: no more, or answers were wrong; no less, or a hot resource were slow.
BOOST_AUTO_TEST_CASE(followers_are_told_what_serial_execution_would_tell_them) {
    std::mt19937 random(20'261'130);
    int followed = 0, carried_out = 0;
    for (int round = 0; round < 2'000; ++round) {
        serial_server server;
        std::int64_t tokens = 0;
        for (int step = 0; step < 12; ++step) {
            server.now += std::chrono::microseconds(random() % 900'000);
            const any_command leader = random_command(random, tokens);
            std::optional<idempotency_key> known_key;
            std::visit([&](const auto& each) { server.execute(each); }, leader);
            const auto holder = server.holder();
            if (const auto* acquire = std::get_if<acquire_command>(&leader))
                if (holder && holder->owner() == acquire->owner()) known_key = acquire->key();
            if (holder) tokens = holder->fencing_token().number();
            const auto after = holder ? store::standing::held(*holder, server.now, known_key) : store::standing::free();

            const any_command follower = random_command(random, tokens);
            std::visit(
                [&](const auto& command) {
                    const auto foretold = follow(after, command);
                    const auto told = server.execute(command);
                    if (foretold) {
                        ++followed;
                        BOOST_REQUIRE(same(*foretold, told));
                        BOOST_REQUIRE((server.holder() == holder));
                    } else {
                        ++carried_out;
                        BOOST_REQUIRE(writes(told));
                    }
                },
                follower);
        }
    }
    BOOST_TEST(followed > 5'000);
    BOOST_TEST(carried_out > 5'000);
}

BOOST_AUTO_TEST_SUITE_END()
