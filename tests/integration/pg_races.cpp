// Two nodes' database layers on one database.
#include "support/pg_fixture.hpp"

#include <boost/test/unit_test.hpp>

#include <random>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;
using domain::acquire_result;

/// Starts a command on each node at once and waits for both.
template <class Start>
auto on_both(tests::node_database& one, tests::node_database& two, Start start) {
    auto first = start(one, "owner one");
    auto second = start(two, "owner two");
    while (!first->ended() || !second->ended()) {
        one.run_for(1ms);
        two.run_for(1ms);
    }
    return std::pair(*first->answer, *second->answer);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pg_races)

BOOST_AUTO_TEST_CASE(two_owners_race_for_a_new_resource_over_two_nodes) {
    const auto settings = tests::fresh_settings();
    tests::node_database one(settings), two(settings);
    int won_by_one = 0;
    for (int round = 0; round < 300; ++round) {
        const auto name = "new " + std::to_string(round);
        const auto [first, second] = on_both(
            one, two, [&](tests::node_database& node, const char* who) { return node.start_acquire(name, who); });
        BOOST_REQUIRE(first);
        BOOST_REQUIRE(second);
        const bool first_won = first->result() == acquire_result::granted;
        BOOST_REQUIRE(first_won != (second->result() == acquire_result::granted));
        won_by_one += first_won ? 1 : 0;
    }
    BOOST_TEST_MESSAGE("node one won " << won_by_one << " of 300");
}

BOOST_AUTO_TEST_CASE(batches_of_two_nodes_over_the_same_rows_do_not_deadlock_and_tokens_rise) {
    const auto settings = tests::fresh_settings();
    tests::node_database one(settings), two(settings);
    std::map<std::string, std::int64_t> last;
    std::mt19937 random(3);
    for (int round = 0; round < 40; ++round) {
        std::vector<std::pair<std::string, tests::node_database::pending_acquire>> commands;
        for (int each = 0; each < 60; ++each) {
            const auto name = "r" + std::to_string(random() % 20);
            auto& node = each % 2 ? one : two;
            commands.emplace_back(name, node.start_acquire(name, each % 2 ? "owner one" : "owner two", 1));
        }
        while (!std::all_of(commands.begin(), commands.end(), [](const auto& each) { return each.second->ended(); })) {
            one.run_for(1ms);
            two.run_for(1ms);
        }
        std::map<std::string, std::vector<std::int64_t>> tokens;
        for (const auto& [name, command] : commands) {
            BOOST_REQUIRE(*command->answer);
            if ((*command->answer)->result() == acquire_result::granted)
                tokens[name].push_back((*command->answer)->grant().fencing_token().number());
        }
        for (auto& [name, drawn] : tokens) {
            std::sort(drawn.begin(), drawn.end());
            BOOST_TEST((std::adjacent_find(drawn.begin(), drawn.end()) == drawn.end()));
            BOOST_TEST(drawn.front() > last[name]);
            last[name] = drawn.back();
        }
    }
    BOOST_TEST(tests::postgres_cluster::shared().log().find("deadlock detected") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_same_key_on_two_nodes_gets_one_grant) {
    const auto settings = tests::fresh_settings();
    tests::node_database one(settings), two(settings);
    for (int round = 0; round < 100; ++round) {
        const auto name = "r" + std::to_string(round);
        const auto first = one.must_acquire(name, "alice", 30, "k");
        const auto second = two.must_acquire(name, "alice", 30, "k");
        BOOST_TEST((first.fencing_token() == second.fencing_token()));
    }
}

BOOST_AUTO_TEST_SUITE_END()
