// Two hundred waiters over three nodes, while nodes are killed and come back and the database ends their LISTEN
// sessions. Everything that clients saw is written down and judged afterwards. HOLDFAST_CHAOS_SECONDS makes it longer.

#include "support/free_port.hpp"
#include "support/lease_recorder.hpp"
#include "support/lock_client.hpp"
#include "support/node.hpp"
#include "support/postgres_cluster.hpp"
#include "support/shared_nodes.hpp"

#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

namespace {

using namespace holdfast::tests;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;
using moment = steady::time_point;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t nodes_count = 3;
constexpr std::size_t clients_count = 200;
constexpr std::size_t resources_count = 5;

constexpr milliseconds beside_a_free_lock_max = 1'500ms;
constexpr milliseconds behind_a_dead_node_max = 4'000ms;
/// Shorter gaps are every handover's.
constexpr milliseconds worth_a_look = 50ms;
/// What the measuring itself adds: two cores run all of it, and a client sees its answers late.
constexpr milliseconds slack = 500ms;
/// Who came so much earlier was certainly first in the database, whatever its node was doing.
constexpr milliseconds clearly_earlier = 2'000ms;

std::chrono::seconds length_of_run() {
    const char* wanted = std::getenv("HOLDFAST_CHAOS_SECONDS");
    return std::chrono::seconds(wanted ? std::atoi(wanted) : 40);
}

/// One request that stood in line, from its sending to its answer.
struct visit {
    std::string resource;
    std::string owner;
    std::size_t node = 0;
    moment queueing_since;  ///< Since its owner may have had a place: its last grant.
    moment sent;
    moment answered;
    bool granted = false;
};

/// One lease as its holder knew it.
struct tenure {
    std::string resource;
    std::string owner;
    std::int64_t token = 0;
    moment began;  ///< By the database's clock, which is this machine's.
    moment ended;  ///< At the latest.
};

struct death {
    std::size_t node = 0;
    moment killed;
    moment back;
};

/// What all saw. Any thread.
class chronicle {
public:
    void add(visit each) {
        locked([&] { visits_.push_back(std::move(each)); });
    }
    void add(tenure each) {
        locked([&] { tenures_.push_back(std::move(each)); });
    }
    void add(death each) {
        locked([&] { deaths_.push_back(each); });
    }

    /// Call when nobody adds any more.
    std::vector<std::string> out_of_order() const;
    std::vector<std::string> idle_too_long();
    std::size_t tenures() const { return tenures_.size(); }
    milliseconds longest_gap() const { return longest_gap_; }

private:
    template <class Change>
    void locked(Change change) {
        const std::scoped_lock lock(mutex_);
        change();
    }
    bool lived(std::size_t node, moment from, moment to) const {
        return std::none_of(deaths_.begin(), deaths_.end(), [&](const death& each) {
            return each.node == node && each.killed - slack < to && from < each.back + slack;
        });
    }
    bool somebody_died(moment from, moment to) const {
        return std::any_of(deaths_.begin(), deaths_.end(),
                           [&](const death& each) { return each.killed < to && from < each.killed; });
    }
    /// Whether a request waited all that time at a node that lived.
    bool was_awaited(const std::string& resource, const std::string& owner, moment from, moment to) const {
        return std::any_of(visits_.begin(), visits_.end(), [&](const visit& each) {
            return each.resource == resource && each.owner != owner && each.sent + 200ms < from && each.answered > to &&
                   lived(each.node, each.sent, each.answered);
        });
    }

    std::mutex mutex_;
    std::vector<visit> visits_;
    std::vector<tenure> tenures_;
    std::vector<death> deaths_;
    milliseconds longest_gap_{0};
};

/// A grant beside a request of another owner that had waited for clearly longer, all the time, at a living node.
std::vector<std::string> chronicle::out_of_order() const {
    // Who waited at a living node, by resource, the earliest first; and which of those up to there waited longest.
    // Only who waited for long can have been overtaken by somebody who came clearly later: few did.
    struct earlier {
        const visit* self;
        const visit* last_answered;
    };
    std::map<std::string, std::vector<earlier>> long_visits;
    for (const visit& each : visits_)
        if (each.answered - each.sent >= clearly_earlier + slack && lived(each.node, each.sent, each.answered))
            long_visits[each.resource].push_back({&each, &each});
    for (auto& [resource, line] : long_visits) {
        std::sort(line.begin(), line.end(),
                  [](const earlier& left, const earlier& right) { return left.self->sent < right.self->sent; });
        for (std::size_t next = 1; next < line.size(); ++next)
            if (line[next - 1].last_answered->answered > line[next].self->answered)
                line[next].last_answered = line[next - 1].last_answered;
    }
    std::vector<std::string> wrong;
    for (const visit& favoured : visits_) {
        const auto line = long_visits.find(favoured.resource);
        if (!favoured.granted || line == long_visits.end()) continue;
        const auto later =
            std::upper_bound(line->second.begin(), line->second.end(), favoured.queueing_since - clearly_earlier,
                             [](moment limit, const earlier& each) { return limit < each.self->sent; });
        if (later == line->second.begin()) continue;
        const visit& longest = *std::prev(later)->last_answered;
        // Never its own: a client asks one thing at a time.
        if (longest.answered < favoured.answered + slack) continue;
        wrong.push_back(favoured.owner + " got " + favoured.resource + " before " + longest.owner);
    }
    return wrong;
}

std::vector<std::string> chronicle::idle_too_long() {
    std::vector<std::string> wrong;
    std::sort(tenures_.begin(), tenures_.end(), [](const tenure& left, const tenure& right) {
        return std::tie(left.resource, left.token) < std::tie(right.resource, right.token);
    });
    for (std::size_t next = 1; next < tenures_.size(); ++next) {
        const tenure& before = tenures_[next - 1];
        const tenure& after = tenures_[next];
        if (before.resource != after.resource || after.began <= before.ended) continue;
        const auto gap = std::chrono::duration_cast<milliseconds>(after.began - before.ended);
        if (gap < worth_a_look) continue;
        if (!was_awaited(before.resource, after.owner, before.ended, after.began)) continue;
        longest_gap_ = std::max(longest_gap_, gap);
        const bool after_a_death = somebody_died(before.ended - behind_a_dead_node_max - 4s, after.began);
        if (gap <= (after_a_death ? behind_a_dead_node_max : beside_a_free_lock_max) + slack) continue;
        wrong.push_back(after.resource + " stood free for " + std::to_string(gap.count()) + " ms before token " +
                        std::to_string(after.token) + (after_a_death ? ", after a node had died" : ""));
    }
    return wrong;
}

/// Three nodes at fixed ports, of which one at a time dies.
class three_nodes {
public:
    explicit three_nodes(const std::string& database_url) : database_url_(database_url) {
        for (std::size_t each = 0; each < nodes_count; ++each) {
            ports_[each] = holdfast::tests::free_port();
            start(each);
        }
    }

    std::uint16_t port(std::size_t number) const { return ports_[number]; }

    death kill_and_restart(std::size_t number) {
        death each;
        each.node = number;
        each.killed = steady::now();
        nodes_[number]->kill();
        std::this_thread::sleep_for(2s);  // the time that a supervisor takes
        start(number);
        each.back = steady::now();
        return each;
    }

private:
    void start(std::size_t number) {
        nodes_[number] =
            std::make_unique<node>(database_url_, node::settings{{"PORT", std::to_string(ports_[number])}});
    }

    std::string database_url_;
    std::array<std::uint16_t, nodes_count> ports_{};
    std::array<std::unique_ptr<node>, nodes_count> nodes_;
};

/// One client's life: stand in line, hold, give back, stand in line again.
class patient_client {
public:
    patient_client(std::size_t number, const three_nodes& nodes, chronicle& chronicle, lease_recorder& recorder)
        : owner_("waiter-" + std::to_string(number)),
          resource_("chaos-" + std::to_string(number % resources_count)),
          nodes_(nodes),
          chronicle_(chronicle),
          recorder_(recorder),
          random_(static_cast<unsigned>(number) + 1),
          node_(number / resources_count % nodes_count),
          client_(nodes.port(node_)),
          began_(steady::now()),
          began_wall_(std::chrono::system_clock::now()) {}

    void run_until(moment end) {
        auto queueing_since = steady::now();
        while (steady::now() < end) {
            const auto lease = stand_in_line(queueing_since, end);
            if (!lease) break;
            hold(*lease);
            queueing_since = steady::now();
        }
    }

    std::size_t grants() const { return grants_; }

private:
    struct held {
        lease_recorder::lease lease;
        moment certain_until;
    };

    std::size_t below(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_); }
    moment as_steady(const std::string& time) const {
        const std::chrono::system_clock::time_point wall{microseconds(parse_time_us(time).value())};
        return began_ + std::chrono::duration_cast<steady::duration>(wall - began_wall_);
    }
    void go_elsewhere() {
        node_ = (node_ + 1) % nodes_count;
        client_.move_to(nodes_.port(node_));
    }

    /// Asks until it is granted; after a lost answer again under the same key, at another node.
    std::optional<held> stand_in_line(moment queueing_since, moment end) {
        const std::string key = fresh_name("key");
        const std::int64_t ttl = below(20) == 0 ? 1 : 3;
        while (steady::now() < end) {
            boost::json::object body{{"owner", owner_}, {"ttl_seconds", ttl}, {"wait_seconds", 4 + below(4)}};
            const reply answer = client_.request("POST", "/locks/" + resource_, boost::json::serialize(body),
                                                 {{"Idempotency-Key", key}});
            const bool granted = answer.status == 200 && answer.acquired();
            chronicle_.add(
                visit{resource_, owner_, node_, queueing_since, answer.when.sent, answer.when.received, granted});
            if (granted) return note(answer);
            if (answer.status == 200) continue;
            if (answer.status != 0 && answer.status != 503) recorder_.outside_the_contract(answer.text());
            go_elsewhere();
            if (answer.status == 503) std::this_thread::sleep_for(20ms);
        }
        return std::nullopt;
    }

    held note(const reply& answer) {
        ++grants_;
        const auto lease = answer.lease();
        const milliseconds waited(answer.json.as_object().at("waited_ms").to_number<std::int64_t>());
        const auto read_at = std::min(answer.when.sent + waited, answer.when.received);
        recorder_.granted(lease, {read_at, answer.when.received});
        return {lease, read_at + lease.expires_in};
    }

    void hold(const held& held) {
        tenure mine{resource_, owner_, held.lease.token, as_steady(held.lease.acquired_at),
                    as_steady(held.lease.expires_at)};
        std::this_thread::sleep_for(milliseconds(below(10)));
        if (below(50) != 0) {
            recorder_.ended(resource_, owner_, steady::now());
            for (int attempt = 0; attempt < 20; ++attempt) {
                const reply answer = client_.release(resource_, owner_, held.lease.token);
                if (answer.status == 204 || answer.status == 404 || answer.status == 403) {
                    // 404 and 403 say the same after a lost answer: no longer mine, at the latest when it said so.
                    mine.ended = std::min(mine.ended, answer.when.received);
                    break;
                }
                go_elsewhere();
            }
        }
        chronicle_.add(mine);
    }

    std::string owner_;
    std::string resource_;
    const three_nodes& nodes_;
    chronicle& chronicle_;
    lease_recorder& recorder_;
    std::mt19937 random_;
    std::size_t node_;
    lock_client client_;
    moment began_;
    std::chrono::system_clock::time_point began_wall_;
    std::size_t grants_ = 0;
};

/// Calls `deed(n)` every `interval` until `end`.
template <class Deed>
void regularly(std::chrono::seconds interval, moment end, Deed deed) {
    std::size_t count = 0;
    for (auto next = steady::now() + interval; next < end; next += interval) {
        std::this_thread::sleep_until(next);
        deed(count++);
    }
}

std::string listed(const std::vector<std::string>& lines) {
    std::ostringstream text;
    text << lines.size() << " in all";
    for (std::size_t each = 0; each < std::min<std::size_t>(lines.size(), 10); ++each)
        text << "\n  " << lines[each];
    return text.str();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(waiting_chaos)

BOOST_AUTO_TEST_CASE(order_and_exclusion_outlive_the_death_of_nodes_and_of_listen_sessions) {
    postgres_cluster cluster;
    const std::string database = cluster.create_database();
    three_nodes nodes(cluster.url(database));
    chronicle chronicle;
    lease_recorder recorder;
    const auto end = steady::now() + length_of_run();
    // Whoever dies last must be back, and what it left be settled, before the clients stop to wait.
    const auto calm = end - 12s;
    std::atomic<int> terminated{0};
    std::atomic<int> killed{0};
    std::array<std::size_t, clients_count> grants{};

    std::jthread killer([&] {
        regularly(20s, calm, [&](std::size_t count) {
            chronicle.add(nodes.kill_and_restart(count % nodes_count));
            ++killed;
        });
    });
    std::jthread deafener([&] {
        regularly(7s, calm, [&](std::size_t) {
            const std::string gone = cluster.psql(
                "SELECT count(*) FROM (SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ILIKE "
                "'%LISTEN%' AND pid <> pg_backend_pid()) AS t",
                database);
            terminated += std::atoi(gone.c_str());
        });
    });
    in_parallel(clients_count, [&](std::size_t number) {
        patient_client client(number, nodes, chronicle, recorder);
        client.run_until(end);
        grants[number] = client.grants();
    });
    killer.join();
    deafener.join();

    const auto violations = recorder.violations();
    BOOST_TEST(violations.empty(), listed(violations));
    const auto overtaken = chronicle.out_of_order();
    BOOST_TEST(overtaken.empty(), "overtaken: " << listed(overtaken));
    const auto idle = chronicle.idle_too_long();
    BOOST_TEST(idle.empty(), "idle: " << listed(idle));
    // Nobody starves, and the run was one.
    BOOST_TEST(*std::min_element(grants.begin(), grants.end()) > 0u);
    BOOST_TEST(killed.load() > 0);
    BOOST_TEST(terminated.load() > 0);
    BOOST_TEST(chronicle.tenures() > clients_count);
    BOOST_TEST_MESSAGE(chronicle.tenures()
                       << " grants, " << killed << " nodes killed, " << terminated
                       << " LISTEN sessions ended, longest gap " << chronicle.longest_gap().count() << " ms");
}

BOOST_AUTO_TEST_SUITE_END()
