// One hot resource, many clients, two real nodes, one real database: everything that was answered can be explained by
// one lock that served one request after the other (support/linearizability.hpp says what is searched for).
#include "support/linearizability.hpp"

#include "support/lock_history.hpp"
#include "support/shared_nodes.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <random>
#include <set>
#include <thread>

namespace {

using namespace holdfast::tests;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

const node::settings short_limits{
    {"REQUEST_DEADLINE_MS", "2000"}, {"STATEMENT_TIMEOUT_MS", "1500"}, {"LOCK_TIMEOUT_MS", "500"}};
/// A node writes nothing later than its deadline; the rest is for a machine that is busy with other things.
constexpr auto finality = 4'000ms;
/// Between readings of one clock by different processes: what rounding and the adjusting of its rate may cost.
constexpr std::int64_t skew_us = 200;

constexpr std::size_t owners = 4;
constexpr std::size_t connections_per_owner = 3;

/// What users of one resource tell each other, so that their requests meet.
struct blackboard {
    std::string resource = fresh_name("hot");
    std::array<std::atomic<std::uint16_t>, 2> ports{};
    std::atomic<bool> over = false;
    /// In a quiet time nobody does anything for the lease that there is, so that it ends by itself.
    std::atomic<bool> quiet = false;
    std::atomic<std::size_t> holder = owners;                ///< As far as one knows.
    std::array<std::atomic<std::int64_t>, owners> tokens{};  ///< The last that each owner was granted.
    lock_history history;
};

/// One connection of one owner, which does one random thing after the other.
class user {
public:
    user(blackboard& board, std::size_t number)
        : board_(board),
          owner_(number % owners),
          node_(number / owners % 2),
          random_(static_cast<unsigned>(number + 1)),
          client_(board.ports[node_], board.resource, "owner-" + std::to_string(owner_), finality, board.history) {}

    void live() {
        while (!board_.over) {
            client_.move_to(board_.ports[node_]);
            if (board_.quiet && board_.holder == owner_)
                client_.look();
            else
                do_something();
            std::this_thread::sleep_for(std::chrono::microseconds(below(4'000)));
        }
    }

private:
    std::int64_t below(std::int64_t bound) {
        return static_cast<std::int64_t>(random_() % static_cast<unsigned>(bound));
    }

    void do_something() {
        const std::int64_t dice = below(100);
        if (dice < 20) return acquire("");
        if (dice < 40) return acquire(some_key());
        if (dice < 55) return void(client_.renew(1, some_token()));
        if (dice < 75) return void(client_.release(some_token()));
        if (dice < 99 || below(2) > 0) return void(client_.look());
        abandon_something();
    }

    void acquire(const std::string& key) {
        note(client_.acquire(1, key));
        // As a client that did not hear the answer would.
        if (!key.empty() && below(3) == 0) note(client_.acquire(1, key));
    }

    void note(const lock_call& call) {
        if (call.answer != call_answer::lease) return;
        board_.holder = owner_;
        board_.tokens[owner_] = call.shown_token;
    }

    /// One of few, shared by the owner's connections; others after a while.
    std::string some_key() {
        return "key-" + std::to_string(board_.tokens[owner_] / 8) + "-" + std::to_string(below(2));
    }

    /// None, the owner's last one, or one that cannot be the present one of this owner (or is it by chance).
    std::optional<std::int64_t> some_token() {
        const std::int64_t dice = below(10);
        if (dice < 4) return std::nullopt;
        return dice < 8 ? board_.tokens[owner_].load() : std::max<std::int64_t>(board_.tokens[owner_] - 1, 0);
    }

    void abandon_something() {
        const std::chrono::microseconds patience(below(3'000));
        switch (below(4)) {
            case 0:
                return client_.abandon_acquire(1, "", patience);
            case 1:
                return client_.abandon_acquire(1, some_key(), patience);
            case 2:
                return client_.abandon_renew(1, patience);
            default:
                return client_.abandon_release(patience);
        }
    }

    blackboard& board_;
    std::size_t owner_;
    std::size_t node_;
    std::mt19937 random_;
    history_client client_;
};

/// Lets users live, with quiet times between, while `trouble(round)` is made; for about `rounds` times 1.9 s.
template <class Trouble>
void let_live(blackboard& board, int rounds, Trouble trouble) {
    std::vector<std::jthread> users;
    for (std::size_t number = 0; number < owners * connections_per_owner; ++number)
        users.emplace_back([&board, number] { user(board, number).live(); });
    for (int round = 0; round < rounds; ++round) {
        board.quiet = false;
        const auto begin = steady::now();
        trouble(round);
        std::this_thread::sleep_until(begin + 700ms);
        board.quiet = true;
        std::this_thread::sleep_until(begin + 1'900ms);
    }
    board.over = true;
}

/// Between the clock that users read and one that nobody sets.
std::int64_t wall_clock_offset_us() {
    return wall_clock_us() -
           std::chrono::duration_cast<std::chrono::microseconds>(steady::now().time_since_epoch()).count();
}

std::size_t count(const std::vector<lock_call>& calls, call_kind kind, call_answer answer) {
    return static_cast<std::size_t>(std::count_if(
        calls.begin(), calls.end(), [&](const lock_call& call) { return call.kind == kind && call.answer == answer; }));
}

/// Each thing that the history is about did happen in it.
void check_interesting(const std::vector<lock_call>& calls) {
    std::set<std::int64_t> granted;
    std::size_t repeated = 0;
    for (const lock_call& call : calls)
        if (call.kind == call_kind::acquire && call.answer == call_answer::lease)
            repeated += granted.insert(call.shown_token).second ? 0 : 1;
    BOOST_TEST_MESSAGE(calls.size() << " operations, " << granted.size() << " grants, " << repeated << " repeated");
    BOOST_TEST(calls.size() > 1'000u);
    BOOST_TEST(granted.size() > 50u);
    BOOST_TEST(repeated > 10u);
    for (const auto& [kind, answer] :
         std::vector<std::pair<call_kind, call_answer>>{{call_kind::acquire, call_answer::refused},
                                                        {call_kind::acquire, call_answer::unknown},
                                                        {call_kind::renew, call_answer::lease},
                                                        {call_kind::renew, call_answer::not_found},
                                                        {call_kind::renew, call_answer::forbidden},
                                                        {call_kind::release, call_answer::released},
                                                        {call_kind::release, call_answer::not_found},
                                                        {call_kind::release, call_answer::forbidden},
                                                        {call_kind::look, call_answer::lease},
                                                        {call_kind::look, call_answer::not_found}})
        BOOST_TEST(count(calls, kind, answer) > 0u);
}

void check_linearizable(const blackboard& board, std::int64_t offset_before_us) {
    const std::int64_t stepped_us = std::abs(wall_clock_offset_us() - offset_before_us);
    BOOST_TEST_REQUIRE(stepped_us < 10'000, "the machine's clock was set meanwhile, so this run says nothing");
    const auto calls = board.history.calls();
    for (const std::string& complaint : board.history.complaints())
        BOOST_ERROR(complaint);
    check_interesting(calls);
    const auto begin = steady::now();
    const history_judgement judgement = judge_history(calls, skew_us + stepped_us);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(steady::now() - begin);
    BOOST_TEST_MESSAGE("judged in " << took.count() << " ms; " << judgement.unknowns << " unknown outcomes explained "
                                    << "something; at most " << judgement.states_max << " states at a time");
    BOOST_TEST((judgement.verdict == history_verdict::legal),
               (judgement.verdict == history_verdict::illegal ? "not linearizable: " : "undecided: ") << judgement.why);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(linearizability)

// Several histories, each on a resource of its own: what a long one costs to judge grows faster than its length.

BOOST_AUTO_TEST_CASE(one_hot_resource_over_two_nodes) {
    postgres_cluster& cluster = postgres_cluster::shared();
    const std::string database = cluster.create_database();
    const node first(cluster.url(database), short_limits);
    const node second(cluster.url(database), short_limits);
    for (int history = 0; history < 3; ++history) {
        blackboard board;
        board.ports[0] = first.port();
        board.ports[1] = second.port();
        const std::int64_t offset_us = wall_clock_offset_us();
        let_live(board, 2, [](int) {});
        check_linearizable(board, offset_us);
    }
}

BOOST_AUTO_TEST_CASE(one_hot_resource_while_a_node_is_killed_and_replaced) {
    postgres_cluster& cluster = postgres_cluster::shared();
    const std::string database = cluster.create_database();
    const node staying(cluster.url(database), short_limits);
    auto mortal = std::make_unique<node>(cluster.url(database), short_limits);
    for (int history = 0; history < 3; ++history) {
        blackboard board;
        board.ports[0] = staying.port();
        board.ports[1] = mortal->port();
        const std::int64_t offset_us = wall_clock_offset_us();
        let_live(board, 1, [&](int) {
            std::this_thread::sleep_for(300ms);
            mortal->kill();
            mortal = std::make_unique<node>(cluster.url(database), short_limits);
            board.ports[1] = mortal->port();
        });
        check_linearizable(board, offset_us);
    }
}

BOOST_AUTO_TEST_SUITE_END()
