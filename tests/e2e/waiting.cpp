// Contract, section 8, against real nodes: handovers, expiry, places, nodes that die, stop or end, clients that go
// away, notifications that get lost. What must hold for one owner is tried with few of them; waiting_chaos tries it
// with many.

#include "holdfast/app/descriptor_limit.hpp"

#include "support/haproxy.hpp"
#include "support/http_client.hpp"
#include "support/metrics_page.hpp"
#include "support/pgbouncer.hpp"
#include "support/shared_nodes.hpp"
#include "support/wait_until.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

namespace {

using namespace holdfast::tests;
using namespace std::chrono_literals;
using holdfast::test::http_answer;
using holdfast::test::http_client;
using holdfast::test::http_client_error;
using steady = std::chrono::steady_clock;
using std::chrono::milliseconds;
namespace json = boost::json;

/// What two cores under all of it may add to a bound of the contract.
constexpr milliseconds slack = 700ms;

milliseconds since(steady::time_point start) {
    return std::chrono::duration_cast<milliseconds>(steady::now() - start);
}

/// One request that waits, on a connection of its own.
class waiter {
public:
    waiter(std::uint16_t port, std::string resource, std::string owner, int wait_seconds = 30, int ttl_seconds = 30)
        : resource_(std::move(resource)), owner_(std::move(owner)), client_(http_client::connect("127.0.0.1", port)) {
        ask(wait_seconds, ttl_seconds);
    }

    void ask(int wait_seconds = 30, int ttl_seconds = 30) {
        client_.send(http_client::format("POST", "/locks/" + path_segment(resource_),
                                         "{\"owner\":\"" + owner_ +
                                             "\",\"ttl_seconds\":" + std::to_string(ttl_seconds) +
                                             ",\"wait_seconds\":" + std::to_string(wait_seconds) + "}"));
    }
    /// Throws when none comes in time.
    reply answer(milliseconds patience = 10s) {
        client_.patience(patience);
        reply got;
        got.answer = client_.read("POST");
        got.status = got.answer.status;
        got.json = json::parse(got.answer.body);
        return got;
    }
    http_client& connection() { return client_; }
    const std::string& owner() const { return owner_; }

private:
    std::string resource_;
    std::string owner_;
    http_client client_;
};

const json::object& body_of(const reply& reply) {
    return reply.json.as_object();
}

std::size_t living(const std::string& database, const std::string& resource) {
    return std::stoul(postgres_cluster::shared().psql(
        "SELECT count(*) FROM holdfast.waiters WHERE kept_until IS NULL AND resource = '" + resource + "'", database));
}

bool stand(const std::string& database, const std::string& resource, std::size_t count) {
    return wait_until(5s, [&] { return living(database, resource) == count; });
}

milliseconds median(std::vector<milliseconds> values) {
    std::sort(values.begin(), values.end());
    return values.at(values.size() / 2);
}

std::size_t waiting_at(const node& node) {
    const std::string page = lock_client(node.port()).get("/metrics").answer.body;
    return static_cast<std::size_t>(metrics_page(page).value("holdfast_waiters"));
}

bool has_answered_looks(const node& node) {
    const std::string page = lock_client(node.port()).get("/metrics").answer.body;
    return metrics_page(page).sum("holdfast_http_requests_total", {"route=\"look\""}) > 0;
}

struct two_nodes {
    const std::string& database = shared_nodes::instance().database;
    node& first = shared_nodes::instance().first;
    node& second = shared_nodes::instance().second;
    lock_client at_first{first.port()};
    lock_client at_second{second.port()};
    std::string resource = fresh_name("line");

    std::int64_t hold(const std::string& owner = "holder", int ttl_seconds = 60) {
        return at_first.acquire(resource, owner, ttl_seconds).token();
    }
};

/// For cases that harm their nodes.
struct own_nodes {
    std::string database = postgres_cluster::shared().create_database();
    std::vector<std::unique_ptr<node>> nodes;
    std::string resource = fresh_name("line");

    own_nodes() { start(2); }

    void start(int count) {
        for (int i = 0; i < count; ++i)
            nodes.push_back(std::make_unique<node>(postgres_cluster::shared().url(database)));
    }
};

struct balanced_nodes : own_nodes {
    haproxy balancer{{nodes[0]->port(), nodes[1]->port()}};
    lock_client through{balancer.port()};

    balanced_nodes() {
        BOOST_REQUIRE(wait_until(10s, [&] {
            through.look(resource);
            return has_answered_looks(*nodes[0]) && has_answered_looks(*nodes[1]);
        }));
    }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(waiting)

// ---- handovers

BOOST_FIXTURE_TEST_CASE(a_release_on_one_node_hands_over_to_a_waiter_on_another, two_nodes) {
    std::int64_t token = hold();
    std::vector<milliseconds> took;
    std::string holder = "holder";
    for (int round = 0; round < 20; ++round) {
        waiter next(second.port(), resource, "w" + std::to_string(round));
        BOOST_REQUIRE(stand(database, resource, 1));
        const auto start = steady::now();
        BOOST_REQUIRE(at_first.release(resource, holder, token).status == 204);
        const reply granted = next.answer();
        took.push_back(since(start));
        BOOST_REQUIRE_MESSAGE(granted.acquired(), granted.text());
        BOOST_TEST(granted.token() > token);
        BOOST_TEST(granted.lease().owner == next.owner());
        BOOST_TEST(body_of(granted).at("waited_ms").as_int64() > 0);
        token = granted.token();
        holder = next.owner();
        BOOST_TEST(at_first.look(resource).token() == token);
    }
    BOOST_TEST_MESSAGE("release to grant over two nodes: median " << median(took).count() << " ms");
    BOOST_TEST(median(took).count() < 100);
}

BOOST_FIXTURE_TEST_CASE(first_come_first_served_over_both_nodes, two_nodes) {
    std::int64_t token = hold();
    std::vector<std::unique_ptr<waiter>> line;
    for (std::size_t i = 0; i < 6; ++i) {
        const auto port = i % 2 == 0 ? first.port() : second.port();
        line.push_back(std::make_unique<waiter>(port, resource, "w" + std::to_string(i)));
        BOOST_REQUIRE(stand(database, resource, i + 1));
    }
    // Who does not wait does not overtake.
    BOOST_TEST(!at_second.acquire(resource, "stranger", 30).acquired());
    std::string holder = "holder";
    for (const auto& next : line) {
        BOOST_TEST(at_second.release(resource, holder, token).status == 204);
        BOOST_TEST(!at_second.acquire(resource, "stranger", 30).acquired());
        const reply granted = next->answer();
        BOOST_REQUIRE_MESSAGE(granted.acquired(), granted.text());
        token = granted.token();
        holder = next->owner();
    }
    BOOST_TEST(at_second.release(resource, holder, token).status == 204);
    BOOST_TEST(at_second.acquire(resource, "stranger", 30).acquired());
}

BOOST_FIXTURE_TEST_CASE(an_expiry_is_handed_over_soon_and_never_early, two_nodes) {
    constexpr std::size_t count = 20;
    std::vector<milliseconds> late(count);
    std::vector<std::string> faults(count);
    in_parallel(count, [&](std::size_t i) {
        std::this_thread::sleep_for(milliseconds(37 * i));
        const std::string name = fresh_name("expiry");
        lock_client holder(first.port());
        const auto ends = parse_time_us(holder.acquire(name, "holder", 1).lease().expires_at);
        waiter next(i % 2 == 0 ? first.port() : second.port(), name, "next");
        const reply granted = next.answer();
        if (!granted.acquired()) faults[i] = granted.text();
        const auto began = parse_time_us(granted.lease().acquired_at);
        late[i] = milliseconds((*began - *ends) / 1000);
        if (*began < *ends) faults[i] = "early: " + granted.text();
    });
    for (const std::string& fault : faults)
        BOOST_TEST(fault.empty(), fault);
    BOOST_TEST_MESSAGE("grant after the end of a lease: median "
                       << median(late).count() << " ms, worst " << std::max_element(late.begin(), late.end())->count());
    BOOST_TEST(median(late).count() <= 50);
}

BOOST_FIXTURE_TEST_CASE(a_renewal_moves_the_end_for_who_waits, two_nodes) {
    const std::int64_t token = hold("holder", 1);
    waiter next(second.port(), resource, "next");
    BOOST_REQUIRE(stand(database, resource, 1));
    const reply renewed = at_first.renew(resource, "holder", 3, token);
    BOOST_REQUIRE(renewed.status == 200);
    const reply granted = next.answer();
    BOOST_REQUIRE(granted.acquired());
    const auto ended = parse_time_us(renewed.lease().expires_at);
    const auto began = parse_time_us(granted.lease().acquired_at);
    BOOST_TEST(*began >= *ended);
    BOOST_TEST(*began - *ended < std::chrono::microseconds(500ms + slack).count());
}

// ---- places

BOOST_FIXTURE_TEST_CASE(a_place_survives_the_polls_of_its_owner_through_the_balancer, balanced_nodes) {
    const std::int64_t token = through.acquire(resource, "holder", 60).token();
    waiter patient(balancer.port(), resource, "patient", 1);
    BOOST_REQUIRE(stand(database, resource, 1));
    waiter later(balancer.port(), resource, "later", 40);
    BOOST_REQUIRE(stand(database, resource, 2));
    for (int poll = 0; poll < 4; ++poll) {
        const reply refused = patient.answer();
        BOOST_REQUIRE(refused.status == 200);
        BOOST_REQUIRE(!refused.acquired());
        BOOST_TEST(body_of(refused).at("position").as_int64() == 1);
        BOOST_TEST(body_of(refused).at("place_kept_ms").as_int64() == 5000);
        // Each poll on a connection of its own, so that it may come to either node.
        patient = waiter(balancer.port(), resource, "patient", poll < 3 ? 1 : 30);
    }
    BOOST_REQUIRE(stand(database, resource, 2));
    BOOST_TEST(through.release(resource, "holder", token).status == 204);
    const reply granted = patient.answer();
    BOOST_REQUIRE_MESSAGE(granted.acquired(), granted.text());
    BOOST_TEST(later.connection().silent_for(300ms));
    BOOST_TEST(through.release(resource, "patient", granted.token()).status == 204);
    BOOST_TEST(later.answer().acquired());
}

BOOST_FIXTURE_TEST_CASE(who_leaves_on_another_node_is_answered_and_passed_over, two_nodes) {
    const std::int64_t token = hold();
    waiter leaver(first.port(), resource, "leaver");
    BOOST_REQUIRE(stand(database, resource, 1));
    waiter next(first.port(), resource, "next");
    BOOST_REQUIRE(stand(database, resource, 2));
    const std::string target = "/locks/" + path_segment(resource) + "/queue";
    const auto start = steady::now();
    BOOST_TEST(at_second.request("DELETE", target, R"({"owner":"leaver"})").status == 204);
    const reply refused = leaver.answer();
    BOOST_TEST(since(start).count() < (1500ms + slack).count());
    BOOST_TEST(!refused.acquired());
    BOOST_TEST(!body_of(refused).contains("place_kept_ms"));
    BOOST_TEST(at_second.request("POST", target + "/leave", R"({"owner":"leaver"})").status == 404);
    BOOST_TEST(at_second.request("POST", target + "/leave", R"({"owner":"holder"})").status == 404);
    BOOST_TEST(at_second.release(resource, "holder", token).status == 204);
    BOOST_TEST(next.answer().acquired());
}

BOOST_FIXTURE_TEST_CASE(asking_again_on_another_node_takes_the_place_over, two_nodes) {
    const std::int64_t token = hold();
    waiter older(first.port(), resource, "me");
    BOOST_REQUIRE(stand(database, resource, 1));
    waiter second_in_line(second.port(), resource, "other");
    BOOST_REQUIRE(stand(database, resource, 2));
    waiter newer(second.port(), resource, "me");
    const auto start = steady::now();
    BOOST_TEST(!older.answer().acquired());
    BOOST_TEST(since(start).count() < (1500ms + slack).count());
    older.connection().close();
    BOOST_TEST(living(database, resource) == 2u);
    BOOST_TEST(at_first.release(resource, "holder", token).status == 204);
    BOOST_TEST(newer.answer().acquired());
    BOOST_TEST(second_in_line.connection().silent_for(200ms));
}

BOOST_FIXTURE_TEST_CASE(a_queue_has_its_bound, own_nodes) {
    const node small(postgres_cluster::shared().url(database), {{"PLACES_PER_RESOURCE_MAX", "2"}});
    lock_client client(small.port());
    client.acquire(resource, "holder", 60);
    waiter first(small.port(), resource, "1");
    waiter second(small.port(), resource, "2");
    BOOST_REQUIRE(stand(database, resource, 2));
    waiter third(small.port(), resource, "3");
    const reply full = third.answer();
    BOOST_TEST(full.status == 429, full.text());
    BOOST_TEST(full.problem() == "queue-full");
    BOOST_TEST(full.answer.header("Retry-After") == "1");
}

// ---- clients that go away

void check_gone_is_passed_over(std::uint16_t port, const std::string& database, const std::string& resource,
                               lock_client& client, void (http_client::*end)()) {
    const std::int64_t token = client.acquire(resource, "holder", 60).token();
    waiter gone(port, resource, "gone");
    BOOST_REQUIRE(stand(database, resource, 1));
    waiter next(port, resource, "next");
    BOOST_REQUIRE(stand(database, resource, 2));
    (gone.connection().*end)();
    BOOST_TEST(wait_until(5s, [&] { return living(database, resource) == 1; }));
    const auto start = steady::now();
    BOOST_TEST(client.release(resource, "holder", token).status == 204);
    const reply granted = next.answer();
    BOOST_TEST(granted.acquired());
    BOOST_TEST(since(start).count() < 1000);
    BOOST_TEST(client.release(resource, "next", granted.token()).status == 204);
    BOOST_TEST(client.look(resource).status == 404);
}

BOOST_FIXTURE_TEST_CASE(a_client_that_is_gone_is_never_granted, two_nodes) {
    for (const auto end : {&http_client::close, &http_client::shutdown_send, &http_client::reset})
        check_gone_is_passed_over(first.port(), database, fresh_name("gone"), at_second, end);
}

BOOST_FIXTURE_TEST_CASE(the_balancer_tells_the_node_that_a_client_is_gone, balanced_nodes) {
    for (const auto end : {&http_client::close, &http_client::reset})
        check_gone_is_passed_over(balancer.port(), database, fresh_name("gone"), through, end);
}

BOOST_FIXTURE_TEST_CASE(a_client_that_goes_while_it_is_offered_the_lock_keeps_nobody_waiting, two_nodes) {
    // A client that half-closes can still be told: either it is told that it is holder, or the lock goes on at once.
    constexpr std::size_t rounds = 1'000;
    constexpr std::size_t users = 8;
    std::atomic<int> delivered{0};
    std::atomic<int> passed_on{0};
    std::atomic<std::int64_t> longest_ms{0};
    std::vector<std::string> faults(users);
    in_parallel(users, [&](std::size_t user) {
        std::mt19937 random(static_cast<unsigned>(user));
        lock_client holder(first.port());
        lock_client checker(second.port());
        for (std::size_t round = 0; round < rounds / users; ++round) {
            const std::string name = fresh_name("race");
            const std::int64_t token = holder.acquire(name, "holder", 60).token();
            waiter racer(second.port(), name, "racer", 30, 60);
            std::this_thread::sleep_for(milliseconds(random() % 20));
            std::jthread release([&] { holder.release(name, "holder", token); });
            std::this_thread::sleep_for(std::chrono::microseconds(random() % 8'000));
            racer.connection().shutdown_send();
            std::optional<reply> told;
            try {
                told = racer.answer(5s);
            } catch (const http_client_error&) {
                // Closed without an answer: it was seen to be gone.
            }
            release.join();
            if (told && told->status == 200 && told->acquired()) {
                ++delivered;
                if (checker.release(name, "racer", told->token()).status != 204) faults[user] = "granted, not holder";
                continue;
            }
            ++passed_on;
            const auto start = steady::now();
            waiter next(first.port(), name, "next", 10, 60);
            const reply granted = next.answer(15s);
            const std::int64_t took = since(start).count();
            if (took > longest_ms) longest_ms = took;
            if (!granted.acquired() || took > (2000ms + slack).count())
                faults[user] = "after " + std::to_string(took) + " ms: " + granted.text();
        }
    });
    for (const std::string& fault : faults)
        BOOST_TEST(fault.empty(), fault);
    BOOST_TEST_MESSAGE(delivered << " told in time, " << passed_on << " passed on within " << longest_ms << " ms");
    BOOST_TEST(delivered > 50);
    BOOST_TEST(passed_on > 50);
}

BOOST_FIXTURE_TEST_CASE(a_late_disconnect_changes_nothing_for_the_newer_request, own_nodes) {
    lock_client at_second(nodes[1]->port());
    const std::int64_t token = at_second.acquire(resource, "holder", 60).token();
    waiter older(nodes[0]->port(), resource, "me");
    BOOST_REQUIRE(stand(database, resource, 1));
    nodes[0]->signal(SIGSTOP);
    older.connection().close();
    waiter newer(nodes[1]->port(), resource, "me");
    const std::string attachment_is_newer =
        "SELECT count(*) FROM holdfast.waiters WHERE attachment > place AND resource = '" + resource + "'";
    BOOST_TEST(wait_until(5s, [&] { return postgres_cluster::shared().psql(attachment_is_newer, database) != "0"; }));
    nodes[0]->signal(SIGCONT);
    BOOST_TEST(newer.connection().silent_for(1500ms));
    BOOST_TEST(living(database, resource) == 1u);
    BOOST_TEST(at_second.release(resource, "holder", token).status == 204);
    BOOST_TEST(newer.answer().acquired());
}

// ---- nodes that die, stop or end

BOOST_FIXTURE_TEST_CASE(a_killed_node_costs_those_behind_its_waiter_four_seconds_at_most, own_nodes) {
    lock_client at_second(nodes[1]->port());
    const std::int64_t token = at_second.acquire(resource, "holder", 60).token();
    waiter lost(nodes[0]->port(), resource, "lost");
    BOOST_REQUIRE(stand(database, resource, 1));
    waiter next(nodes[1]->port(), resource, "next");
    BOOST_REQUIRE(stand(database, resource, 2));
    nodes[0]->kill();
    const auto start = steady::now();
    BOOST_TEST(at_second.release(resource, "holder", token).status == 204);
    const reply granted = next.answer();
    BOOST_TEST_MESSAGE("behind a killed node's waiter: " << since(start).count() << " ms");
    BOOST_TEST(granted.acquired());
    BOOST_TEST(since(start).count() < (4000ms + slack).count());
    // The owner of the lost request finds its place kept, if it comes back soon.
    waiter back(nodes[1]->port(), resource, "lost");
    BOOST_REQUIRE(stand(database, resource, 1));
    BOOST_TEST(at_second.release(resource, "next", granted.token()).status == 204);
    BOOST_TEST(back.answer().acquired());
}

BOOST_FIXTURE_TEST_CASE(a_node_that_was_stopped_confirms_nothing_that_has_passed_on, own_nodes) {
    lock_client at_second(nodes[1]->port());
    const std::int64_t token = at_second.acquire(resource, "holder", 60).token();
    waiter asleep(nodes[0]->port(), resource, "asleep", 50);
    BOOST_REQUIRE(stand(database, resource, 1));
    waiter next(nodes[1]->port(), resource, "next");
    BOOST_REQUIRE(stand(database, resource, 2));
    nodes[0]->signal(SIGSTOP);
    const auto start = steady::now();
    BOOST_TEST(at_second.release(resource, "holder", token).status == 204);
    const reply granted = next.answer();
    BOOST_REQUIRE(granted.acquired());
    BOOST_TEST(since(start).count() < (4000ms + slack).count());
    std::this_thread::sleep_until(start + 5s);
    nodes[0]->signal(SIGCONT);
    BOOST_TEST(asleep.connection().silent_for(2000ms));
    BOOST_TEST(at_second.look(resource).token() == granted.token());
    // It waits again, or is told to ask again; in both cases it may get the lock after the next holder only.
    BOOST_TEST(at_second.release(resource, "next", granted.token()).status == 204);
    const reply at_last = asleep.answer(5s);
    BOOST_TEST(at_last.status == 200, at_last.text());
    if (at_last.acquired()) BOOST_TEST(at_last.token() > granted.token());
}

BOOST_FIXTURE_TEST_CASE(a_node_that_ends_sends_its_waiters_to_another, own_nodes) {
    lock_client at_second(nodes[1]->port());
    const std::int64_t token = at_second.acquire(resource, "holder", 60).token();
    waiter moving(nodes[0]->port(), resource, "moving");
    BOOST_REQUIRE(stand(database, resource, 1));
    waiter later(nodes[1]->port(), resource, "later");
    BOOST_REQUIRE(stand(database, resource, 2));
    const auto start = steady::now();
    nodes[0]->signal(SIGTERM);
    const reply sent_away = moving.answer();
    BOOST_TEST(since(start).count() < 1000);
    BOOST_TEST(sent_away.status == 503, sent_away.text());
    BOOST_TEST(sent_away.problem() == "unavailable");
    BOOST_TEST(sent_away.answer.header("Retry-After") == "1");
    BOOST_TEST(sent_away.answer.header("Connection") == "close");
    BOOST_TEST(wait_until(2s, [&] { return living(database, resource) == 1; }));
    // Kept places hold nobody back, and are taken over.
    waiter moved(nodes[1]->port(), resource, "moving");
    BOOST_REQUIRE(stand(database, resource, 2));
    BOOST_TEST(at_second.release(resource, "holder", token).status == 204);
    const reply granted = moved.answer();
    BOOST_REQUIRE(granted.acquired());
    BOOST_TEST(later.connection().silent_for(200ms));
    BOOST_TEST(at_second.release(resource, "moving", granted.token()).status == 204);
    BOOST_TEST(later.answer().acquired());
    BOOST_TEST((nodes[0]->wait_for_exit(10s) == 0));
    BOOST_TEST(since(start).count() < 10'000);
}

BOOST_FIXTURE_TEST_CASE(waiters_behind_the_balancer_move_when_their_node_ends, balanced_nodes) {
    const std::int64_t token = through.acquire(resource, "holder", 60).token();
    constexpr int count = 6;
    std::vector<std::unique_ptr<waiter>> line;
    for (int i = 0; i < count; ++i) {
        line.push_back(std::make_unique<waiter>(balancer.port(), resource, "w" + std::to_string(i), 40));
        BOOST_REQUIRE(stand(database, resource, static_cast<std::size_t>(i) + 1));
    }
    const std::size_t concerned = waiting_at(*nodes[0]);
    BOOST_TEST(concerned > 0u);
    BOOST_TEST(concerned < line.size());
    nodes[0]->signal(SIGTERM);
    std::vector<waiter*> sent_away;
    BOOST_TEST(wait_until(5s, [&] {
        sent_away.clear();
        for (const auto& each : line)
            if (!each->connection().silent_for(1ms)) sent_away.push_back(each.get());
        return sent_away.size() == concerned;
    }));
    for (waiter* each : sent_away) {
        const reply told = each->answer();
        BOOST_TEST(told.status == 503, told.text());
        BOOST_TEST(told.answer.header("Retry-After") == "1");
    }
    std::this_thread::sleep_for(1s);  // as they were told
    for (waiter* each : sent_away)
        *each = waiter(balancer.port(), resource, each->owner(), 40);
    BOOST_REQUIRE(stand(database, resource, count));
    std::string holder = "holder";
    std::int64_t held = token;
    for (const auto& next : line) {
        BOOST_TEST(through.release(resource, holder, held).status == 204);
        const reply granted = next->answer();
        BOOST_REQUIRE_MESSAGE(granted.acquired(), granted.text());
        holder = next->owner();
        held = granted.token();
    }
    BOOST_TEST((nodes[0]->wait_for_exit(20s) == 0));
}

BOOST_FIXTURE_TEST_CASE(a_node_is_ready_only_once_requests_can_wait_there, own_nodes) {
    postgres_cluster& cluster = postgres_cluster::shared();
    cluster.psql("ALTER TABLE holdfast.nodes RENAME TO nodes_away", database);
    const node late(cluster.url(database), {}, node::wait_for::listening);
    lock_client client(late.port());
    BOOST_REQUIRE(wait_until(5s, [&] { return client.acquire(resource, "holder", 60).status == 200; }));
    BOOST_TEST(!late.wait_until_ready(500ms));
    cluster.psql("ALTER TABLE holdfast.nodes_away RENAME TO nodes", database);
    BOOST_REQUIRE(late.wait_until_ready(5s));
    const waiter next(late.port(), resource, "next");
    BOOST_TEST(stand(database, resource, 1));
}

// ---- notifications

BOOST_FIXTURE_TEST_CASE(lost_notifications_delay_a_handover_by_a_survey_at_most, own_nodes) {
    lock_client at_first(nodes[0]->port());
    std::int64_t token = at_first.acquire(resource, "holder", 60).token();
    std::string holder = "holder";
    std::atomic<bool> over{false};
    std::jthread breaker([&] {
        while (!over) {
            postgres_cluster::shared().psql(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query ILIKE 'listen%' AND datname "
                "= '" +
                    database + "'",
                database);
            std::this_thread::sleep_for(50ms);
        }
    });
    milliseconds longest{0};
    for (int round = 0; round < 10; ++round) {
        waiter next(nodes[1]->port(), resource, "w" + std::to_string(round));
        BOOST_REQUIRE(stand(database, resource, 1));
        const auto start = steady::now();
        BOOST_TEST(at_first.release(resource, holder, token).status == 204);
        const reply granted = next.answer();
        longest = std::max(longest, since(start));
        BOOST_REQUIRE_MESSAGE(granted.acquired(), granted.text());
        token = granted.token();
        holder = next.owner();
    }
    over = true;
    const std::string page = at_first.get("/metrics").answer.body;
    BOOST_TEST(metrics_page(page).value("holdfast_listener_reconnects_total") > 0);
    BOOST_TEST_MESSAGE("without notifications: at most " << longest.count() << " ms");
    BOOST_TEST(longest.count() < (1500ms + slack).count());
}

BOOST_AUTO_TEST_CASE(behind_a_pooler_notifications_take_the_direct_way) {
    postgres_cluster& cluster = postgres_cluster::shared();
    const std::string database = cluster.create_database();
    const pgbouncer pooler(cluster.port());
    const node::settings settings{{"PREPARED_STATEMENTS", "false"}, {"DATABASE_LISTEN_URL", cluster.url(database)}};
    const node first(pooler.url(database), settings);
    const node second(pooler.url(database), settings);
    lock_client at_first(first.port());
    const std::string resource = fresh_name("pooled");
    std::int64_t token = at_first.acquire(resource, "holder", 60).token();
    std::string holder = "holder";
    std::vector<milliseconds> took;
    for (int round = 0; round < 9; ++round) {
        waiter next(second.port(), resource, "w" + std::to_string(round));
        BOOST_REQUIRE(stand(database, resource, 1));
        const auto start = steady::now();
        BOOST_TEST(at_first.release(resource, holder, token).status == 204);
        const reply granted = next.answer();
        took.push_back(since(start));
        BOOST_REQUIRE_MESSAGE(granted.acquired(), granted.text());
        token = granted.token();
        holder = next.owner();
    }
    BOOST_TEST(median(took).count() < 300);
}

// ---- many

BOOST_AUTO_TEST_CASE(ten_thousand_waiters_are_small_and_served) {
    constexpr std::size_t waiters = 10'000;
    constexpr std::size_t resources = 20;
    BOOST_REQUIRE(holdfast::app::raise_descriptor_limit() > waiters + 200);
    postgres_cluster& cluster = postgres_cluster::shared();
    const std::string database = cluster.create_database();
    const node server(cluster.url(database));
    lock_client client(server.port());
    std::vector<std::string> names;
    for (std::size_t i = 0; i < resources; ++i) {
        names.push_back(fresh_name("many"));
        client.acquire(names.back(), "holder", 600);
    }
    const std::size_t before = server.resident_bytes();
    std::vector<waiter> line;
    line.reserve(waiters);
    for (std::size_t i = 0; i < waiters; ++i)
        line.emplace_back(server.port(), names[i % resources], "host-0123456789-pid-" + std::to_string(i), 50, 30);
    BOOST_REQUIRE(wait_until(30s, [&] { return waiting_at(server) == waiters; }));
    const double each = static_cast<double>(server.resident_bytes() - before) / waiters;
    BOOST_TEST_MESSAGE("each waiter: " << each << " bytes");
    BOOST_TEST(each < 20'480);
    // They are served: the first of each line gets its lock, at once.
    const auto start = steady::now();
    for (std::size_t i = 0; i < resources; ++i)
        BOOST_TEST(client.release(names[i], "holder").status == 204);
    std::size_t granted = 0;
    for (std::size_t i = 0; i < resources; ++i)
        granted += line[i].answer().acquired() ? 1 : 0;
    BOOST_TEST(granted == resources);
    BOOST_TEST(since(start).count() < 2000);
}

BOOST_AUTO_TEST_SUITE_END()
