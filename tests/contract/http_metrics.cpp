// Contract, section 10: `GET /metrics`.

#include "support/http_expect.hpp"
#include "support/http_node.hpp"
#include "support/metrics_page.hpp"
#include "support/wait_until.hpp"

#include <boost/test/unit_test.hpp>

namespace {

using namespace holdfast::test;
using namespace std::chrono_literals;
using holdfast::tests::metrics_page;
using holdfast::tests::wait_until;

const std::string mine = R"({"owner":"me","ttl_seconds":30})";
const std::string yours = R"({"owner":"you","ttl_seconds":30})";

struct fixture {
    http_node node;
    http_client client = node.connect();

    metrics_page page() { return metrics_page(client.request("GET", "/metrics").body); }
    double answers(const std::string& route, int status) {
        return page().value("holdfast_http_requests_total{route=\"" + route + "\",status=\"" + std::to_string(status) +
                            "\"}");
    }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(http_metrics, fixture)

BOOST_AUTO_TEST_CASE(a_page_in_the_text_format) {
    const auto answer = client.request("GET", "/metrics");
    BOOST_TEST(answer.status == 200);
    BOOST_TEST(answer.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8");
    BOOST_TEST(answer.header("Cache-Control") == "no-store");
    BOOST_TEST(metrics_page(answer.body).series().size() > 100u);
}

BOOST_AUTO_TEST_CASE(head_and_options) {
    const auto head = client.request("HEAD", "/metrics");
    BOOST_TEST(head.status == 200);
    BOOST_TEST(head.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8");
    BOOST_TEST(std::stoul(head.header("Content-Length")) > 1000u);
    BOOST_TEST(head.body.empty());
    const auto options = client.request("OPTIONS", "/metrics");
    BOOST_TEST(options.status == 204);
    BOOST_TEST(options.header("Allow") == "GET, HEAD, OPTIONS");
}

BOOST_AUTO_TEST_CASE(every_answer_is_counted_before_the_client_has_it) {
    const auto check = [&](const std::string& route, int status, double count) {
        BOOST_TEST(answers(route, status) == count, route << ' ' << status);
    };
    client.request("POST", "/locks/a", mine);
    check("acquire", 200, 1);
    client.request("POST", "/locks/a", yours);
    check("acquire", 200, 2);
    client.request("POST", "/locks/a", "{}");
    check("acquire", 422, 1);
    client.request("POST", "/locks/a/renew", yours);
    check("renew", 403, 1);
    client.request("GET", "/locks/b");
    client.request("HEAD", "/locks/b");
    check("look", 404, 2);
    client.request("DELETE", "/locks/a", R"({"owner":"me"})");
    client.request("POST", "/locks/a/release", R"({"owner":"me"})");
    check("release", 204, 1);
    check("release", 404, 1);
    client.request("GET", "/healthz");
    check("health", 200, 1);
    client.request("GET", "/problems/not-found");
    check("problem_type", 200, 1);
    client.request("GET", "/openapi.json");
    check("openapi", 200, 1);
    node.readiness().is_ready = false;
    client.request("GET", "/readyz");
    check("readiness", 503, 1);
    client.request("GET", "/nowhere");
    check("unmatched", 404, 1);
    client.request("OPTIONS", "/locks/a");
    check("unmatched", 204, 1);
    client.request("PUT", "/locks/a");
    check("unmatched", 405, 1);
    auto other = node.connect();
    other.send("nonsense\r\n\r\n");
    BOOST_TEST(other.read().status == 400);
    check("unmatched", 400, 1);
    BOOST_TEST(page().sum("holdfast_http_requests_total", {"status=\"500\""}) == 0);
}

BOOST_AUTO_TEST_CASE(each_answer_has_its_duration) {
    for (int i = 0; i < 5; ++i)
        client.request("GET", "/locks/a");
    const auto now = page();
    BOOST_TEST(now.value(R"(holdfast_http_request_duration_seconds_count{route="look"})") == 5);
    BOOST_TEST(now.value(R"(holdfast_http_request_duration_seconds_sum{route="look"})") > 0);
    BOOST_TEST(now.sum("holdfast_http_request_duration_seconds_count") == now.sum("holdfast_http_requests_total"));
}

BOOST_AUTO_TEST_CASE(names_add_no_series) {
    const auto before = page().series();
    constexpr int names = 10'000;
    for (int i = 0; i < names; ++i) {
        const std::string name = std::to_string(i);
        client.request("POST", "/locks/" + name, R"({"owner":"w)" + name + R"(","ttl_seconds":30})");
        if (i % 10 == 0) client.request("GET", "/path-" + name);
        if (i % 10 == 1) client.request("METHOD" + name, "/locks/" + name);
    }
    const auto after = page();
    BOOST_TEST(after.series() == before, boost::test_tools::per_element());
    BOOST_TEST(after.value(R"(holdfast_http_requests_total{route="acquire",status="200"})") == names);
    BOOST_TEST(after.sum("holdfast_http_requests_total", {"route=\"unmatched\""}) == names / 5);
}

BOOST_AUTO_TEST_CASE(open_connections_are_counted) {
    BOOST_TEST(page().value("holdfast_http_connections_open") == 1);
    {
        auto second = node.connect();
        auto third = node.connect();
        BOOST_TEST(page().value("holdfast_http_connections_open") == 3);
    }
    BOOST_TEST(wait_until(5s, [&] { return page().value("holdfast_http_connections_open") == 1; }));
}

BOOST_AUTO_TEST_CASE(a_page_needs_no_store) {
    node.store().now = faulty_store::fault::stuck;
    auto waiting = node.connect();
    waiting.send(http_client::format("GET", "/locks/a"));
    BOOST_TEST(wait_until(5s, [&] { return node.store().asked == 1; }));
    BOOST_TEST(answers("look", 404) == 0);
    BOOST_TEST(client.request("GET", "/metrics").status == 200);
    BOOST_TEST(node.store().asked == 1);
    node.cut_off();
}

BOOST_AUTO_TEST_SUITE_END()
