// Three nodes behind a real HAProxy with the project's own configuration.

#include "support/free_port.hpp"
#include "support/haproxy.hpp"
#include "support/shared_nodes.hpp"
#include "support/wait_until.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include <signal.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace {

using namespace holdfast::tests;
using namespace std::chrono_literals;

struct fixture {
    std::string database = postgres_cluster::shared().create_database();
    std::vector<std::unique_ptr<node>> nodes;
    std::optional<haproxy> balancer;

    fixture() {
        for (int i = 0; i < 3; ++i)
            nodes.push_back(std::make_unique<node>(postgres_cluster::shared().url(database)));
        balancer.emplace(std::vector<std::uint16_t>{nodes[0]->port(), nodes[1]->port(), nodes[2]->port()});
        BOOST_REQUIRE(balancer->wait_until_ready(10s));
        std::this_thread::sleep_for(1200ms);  // two rounds of checks: the balancer has seen all three
    }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(balancer, fixture)

BOOST_AUTO_TEST_CASE(requests_pass_through_unchanged) {
    lock_client client(balancer->port());
    const std::string resource = "a/b+c %41 \u00e9 " + fresh_name("through");
    const reply grant = client.acquire(resource, "w", 60, "key-1");
    BOOST_REQUIRE_MESSAGE(grant.status == 200 && grant.acquired(), grant.text());
    BOOST_TEST(grant.lease().resource == resource);
    BOOST_TEST(client.acquire(resource, "w", 60, "key-1").token() == grant.token());
    BOOST_TEST(client.renew(resource, "w", 60, grant.token()).status == 200);
    BOOST_TEST(client.release(resource, "w", grant.token()).status == 204);  // the body of a DELETE arrives
    BOOST_TEST(client.look(resource).status == 404);
    BOOST_TEST(client.get("/locks/" + std::string(8200, 'n')).status == 414);
    BOOST_TEST(client.request("GET", "/healthz", "", {{"X-Long", std::string(17'000, 'v')}}).status == 431);
}

BOOST_AUTO_TEST_CASE(a_node_killed_under_load_loses_no_lock) {
    std::vector<std::pair<std::string, std::int64_t>> standing;
    lock_client client(balancer->port());
    for (int i = 0; i < 30; ++i) {
        const std::string resource = fresh_name("standing");
        standing.emplace_back(resource, client.acquire(resource, "w", 600).token());
    }
    lease_recorder recorder;
    std::atomic<bool> over = false;
    std::atomic<int> served = 0;
    std::atomic<int> failed = 0;
    std::vector<std::jthread> users;
    for (int number = 0; number < 12; ++number)
        users.emplace_back([&, number] {
            recorded_client user(balancer->port(), "user-" + std::to_string(number), recorder);
            while (!over) {
                const std::string resource = "common-" + std::to_string(served % 3);
                const reply grant = user.acquire(resource, 2);
                if (grant.status == 0 || grant.status == 503) ++failed;
                if (grant.status != 200 || !grant.acquired()) continue;
                ++served;
                user.release(resource, grant.token());
            }
        });
    BOOST_TEST(wait_until(10s, [&] { return served > 100; }));

    nodes[1]->kill();
    const int before = served;
    BOOST_TEST(wait_until(10s, [&] { return served > before + 200; }));
    over = true;
    users.clear();

    // Anything but 503 and a broken connection would be among the violations.
    for (const std::string& violation : recorder.violations())
        BOOST_ERROR(violation);
    BOOST_TEST_MESSAGE(served << " served, " << failed << " to be repeated");
    BOOST_TEST(failed < 100);
    for (const auto& [resource, token] : standing)
        BOOST_TEST(client.look(resource).token() == token);
}

BOOST_AUTO_TEST_CASE(a_node_that_cannot_write_is_left_out) {
    // A fourth node whose database is nowhere: alive, never ready.
    node unready("postgresql://holdfast@127.0.0.1:" + std::to_string(free_port()) + "/nowhere", {},
                 node::wait_for::listening);
    const haproxy mixed({unready.port(), nodes[0]->port()});
    BOOST_REQUIRE(mixed.wait_until_ready(10s));
    std::this_thread::sleep_for(1200ms);
    for (int i = 0; i < 50; ++i) {
        lock_client client(mixed.port());
        const reply grant = client.acquire(fresh_name("mixed"), "w", 60);
        BOOST_TEST(grant.status == 200, grant.text());
    }
}

BOOST_AUTO_TEST_CASE(the_balancer_itself_answers_with_a_problem) {
    for (const auto& each : nodes)
        each->kill();
    lock_client client(balancer->port());
    reply refused;
    // Until the checks have seen it, a connection to a dead node may be what fails; also a 503.
    BOOST_TEST(wait_until(5s, [&] {
        refused = client.acquire("x", "w", 60);
        return refused.status == 503 && refused.problem() == "unavailable";
    }));
    BOOST_TEST(outside_the_contract(refused) == "", refused.text());
    BOOST_TEST(refused.answer.header("Content-Type") == "application/problem+json");
    BOOST_TEST(refused.answer.header("Retry-After") == "1");
    BOOST_TEST(refused.answer.header("Cache-Control") == "no-store");
    BOOST_TEST(refused.json.as_object().at("instance").as_string() == "/locks/x");

    // And they are found again.
    nodes[0] = std::make_unique<node>(postgres_cluster::shared().url(database),
                                      node::settings{{"PORT", std::to_string(nodes[0]->port())}});
    BOOST_TEST(wait_until(5s, [&] { return client.acquire("x", "w", 60).status == 200; }));
}

BOOST_AUTO_TEST_SUITE_END()
