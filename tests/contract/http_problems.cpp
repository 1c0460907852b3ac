// Contract, section 5: the problems, one case a row.

#include "holdfast/http/problem.hpp"

#include "support/http_expect.hpp"
#include "support/http_node.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

namespace {

using namespace holdfast::test;
using namespace std::chrono_literals;
using fault = faulty_store::fault;

const std::string mine = R"({"owner":"me","ttl_seconds":30})";

holdfast::http::server_settings impatient() {
    holdfast::http::server_settings settings;
    settings.header_deadline = 200ms;
    settings.body_deadline = 200ms;
    return settings;
}

struct fixture {
    http_node node{impatient()};
    http_client client = node.connect();

    /// Every request that asks the store, with its path.
    std::vector<std::pair<std::string, http_answer>> ask_all() {
        return {{"/locks/a", client.request("GET", "/locks/a")},
                {"/locks/a", client.request("POST", "/locks/a", mine)},
                {"/locks/a", client.request("DELETE", "/locks/a", R"({"owner":"me"})")},
                {"/locks/a/release", client.request("POST", "/locks/a/release", R"({"owner":"me"})")},
                {"/locks/a/renew", client.request("POST", "/locks/a/renew", mine)}};
    }

    std::string detail_of(const http_answer& answer) { return std::string(json_of(answer).at("detail").as_string()); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(http_problems, fixture)

BOOST_AUTO_TEST_CASE(invalid_json) {
    check_problem(client.request("POST", "/locks/a", "no json"), 400, "invalid-json", "/locks/a");
}

BOOST_AUTO_TEST_CASE(bad_request) {
    check_problem(client.request("GET", "/locks/%2"), 400, "bad-request", "/locks/%252");
}

BOOST_AUTO_TEST_CASE(forbidden) {
    client.request("POST", "/locks/a", R"({"owner":"you","ttl_seconds":30})");
    check_problem(client.request("DELETE", "/locks/a", R"({"owner":"me"})"), 403, "forbidden", "/locks/a");
}

BOOST_AUTO_TEST_CASE(not_found) {
    check_problem(client.request("GET", "/"), 404, "not-found", "/");
    check_problem(client.request("GET", "/locks/a"), 404, "not-found", "/locks/a");
    check_problem(client.request("POST", "/locks/a/queue/", "{}"), 404, "not-found", "/locks/a/queue/");
}

BOOST_AUTO_TEST_CASE(method_not_allowed) {
    const auto check = [&](std::string_view method, std::string_view path, std::string_view allow) {
        const auto answer = client.request(method, path);
        check_problem(answer, 405, "method-not-allowed", path);
        BOOST_TEST(answer.header("Allow") == std::string(allow));
    };
    check("PUT", "/locks/a", "GET, HEAD, POST, DELETE, OPTIONS");
    check("PATCH", "/locks/a", "GET, HEAD, POST, DELETE, OPTIONS");
    check("get", "/locks/a", "GET, HEAD, POST, DELETE, OPTIONS");
    check("UNHEARD-OF", "/locks/a", "GET, HEAD, POST, DELETE, OPTIONS");
    check("GET", "/locks/a/renew", "POST, OPTIONS");
    check("DELETE", "/locks/a/release", "POST, OPTIONS");
    check("POST", "/healthz", "GET, HEAD, OPTIONS");
    check("DELETE", "/readyz", "GET, HEAD, OPTIONS");
    check("POST", "/openapi.json", "GET, HEAD, OPTIONS");
    check("PUT", "/problems/not-found", "GET, HEAD, OPTIONS");
    check("POST", "/metrics", "GET, HEAD, OPTIONS");
}

BOOST_AUTO_TEST_CASE(request_timeout) {
    client.send("GET /healthz HTTP/1.1\r\nHost:");
    check_problem(client.read(), 408, "request-timeout", "/healthz");
    BOOST_TEST(client.closed_within(2s));
    auto second = node.connect();
    second.send("POST /locks/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{");
    check_problem(second.read(), 408, "request-timeout", "/locks/a");
    BOOST_TEST(second.closed_within(2s));
}

BOOST_AUTO_TEST_CASE(payload_too_large) {
    check_problem(client.request("POST", "/locks/a", std::string(20'000, ' ')), 413, "payload-too-large", "/locks/a");
    BOOST_TEST(client.closed_within(2s));
}

BOOST_AUTO_TEST_CASE(uri_too_long) {
    check_problem(client.request("GET", "/" + std::string(9'000, 'u')), 414, "uri-too-long", "");
    BOOST_TEST(client.closed_within(2s));
}

BOOST_AUTO_TEST_CASE(headers_too_large) {
    check_problem(client.request("GET", "/healthz", "", {{"X", std::string(17'000, 'x')}}), 431, "headers-too-large",
                  "/healthz");
    BOOST_TEST(client.closed_within(2s));
}

BOOST_AUTO_TEST_CASE(unsupported_media_type_of_a_post) {
    for (const std::string type :
         {"text/plain", "application/x-www-form-urlencoded", "application/jsonx", "application/",
          "application/vnd.api+json", "json", "application/json; charset=latin1"})
        check_problem(client.request("POST", "/locks/a", mine, {{"Content-Type", type}}), 415, "unsupported-media-type",
                      "/locks/a");
    client.send("POST /locks/a HTTP/1.1\r\nHost: x\r\nContent-Length: 31\r\n\r\n" + mine);
    check_problem(client.read(), 415, "unsupported-media-type", "/locks/a");
    for (const std::string type : {"application/json", "Application/JSON", "application/json;charset=utf-8",
                                   "application/json ; charset=\"UTF-8\"", "application/json; version=1"})
        BOOST_TEST(client.request("POST", "/locks/a", mine, {{"Content-Type", type}}).status == 200);
}

BOOST_AUTO_TEST_CASE(unsupported_media_type_of_a_delete) {
    const std::string body = R"({"owner":"me"})";
    check_problem(client.request("DELETE", "/locks/a", body, {{"Content-Type", "text/plain"}}), 415,
                  "unsupported-media-type", "/locks/a");
    client.send("DELETE /locks/a HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n\r\n");
    check_problem(client.read(), 415, "unsupported-media-type", "/locks/a");
    client.send("DELETE /locks/a HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n" + body);
    check_problem(client.read(), 404, "not-found", "/locks/a");
}

BOOST_AUTO_TEST_CASE(expectation_failed) {
    check_problem(client.request("POST", "/locks/a", mine, {{"Expect", "200-ok"}}), 417, "expectation-failed",
                  "/locks/a");
    check_problem(client.request("GET", "/locks/a", "", {{"Expect", "100-continue"}, {"Expect", "more"}}), 417,
                  "expectation-failed", "/locks/a");
}

BOOST_AUTO_TEST_CASE(validation_failed_with_every_code) {
    const auto answer =
        client.request("POST", "/locks/" + std::string(256, 'r'), R"({"owner":1,"ttl_seconds":0,"ttl_secs":1})");
    check_problem(answer, 422, "validation-failed", "/locks/" + std::string(256, 'r'));
    check_invalid(answer, {"resource:too_long", "owner:invalid", "ttl_seconds:out_of_range", "ttl_secs:unknown"});
    check_invalid(client.request("POST", "/locks/a", R"({"ttl_seconds":1,"ttl_seconds":2})"),
                  {"owner:required", "ttl_seconds:repeated"});
}

BOOST_AUTO_TEST_CASE(internal_error_has_an_opaque_id_that_the_log_explains) {
    for (const fault broken : {fault::exception, fault::internal}) {
        node.store().now = broken;
        auto next_line = node.journal().lines("request").size();
        for (const auto& [path, answer] : ask_all()) {
            check_problem(answer, 500, "internal-error", path);
            BOOST_TEST(answer.body.find("secret") == std::string::npos);
            const auto line = node.journal().lines("request").at(next_line++);
            BOOST_TEST(line.at("level") == "error");
            BOOST_TEST(line.at("error_id").size() == 36u);
            BOOST_TEST(detail_of(answer).find(line.at("error_id")) != std::string::npos);
            BOOST_TEST(line.at("cause") == (broken == fault::exception ? "a secret of the store" : "internal error"));
        }
    }
    node.store().now = fault::none;
    BOOST_TEST(client.request("POST", "/locks/a", mine).status == 200);
}

BOOST_AUTO_TEST_CASE(unavailable) {
    node.store().now = fault::unavailable;
    for (const auto& [path, answer] : ask_all())
        check_problem(answer, 503, "unavailable", path);
}

BOOST_AUTO_TEST_CASE(overloaded) {
    node.store().now = fault::overloaded;
    for (const auto& [path, answer] : ask_all())
        check_problem(answer, 503, "overloaded", path);
}

BOOST_AUTO_TEST_CASE(outcome_unknown_says_how_to_find_out) {
    node.store().now = fault::outcome_unknown;
    for (const auto& [path, answer] : ask_all()) {
        check_problem(answer, 503, "outcome-unknown", path);
        const auto detail = detail_of(answer);
        for (const char* part : {"6 seconds", "GET the lock", "fencing_token", "Idempotency-Key"})
            BOOST_TEST(detail.find(part) != std::string::npos, detail);
    }
}

BOOST_AUTO_TEST_CASE(overloaded_with_connections) {
    auto settings = impatient();
    settings.connections_max = 2;
    http_node small(settings);
    auto first = small.connect();
    auto second = small.connect();
    BOOST_TEST(first.request("GET", "/healthz").status == 200);
    auto third = small.connect();
    check_problem(third.read(), 503, "overloaded", "");
    BOOST_TEST(third.closed_within(2s));
    BOOST_TEST(second.request("GET", "/healthz").status == 200);
    second.close();
    auto fourth = small.connect();
    for (int attempt = 0; attempt < 50 && fourth.request("GET", "/healthz").status == 503; ++attempt) {
        std::this_thread::sleep_for(20ms);
        fourth = small.connect();
    }
    BOOST_TEST(fourth.request("GET", "/healthz").status == 200);
}

BOOST_AUTO_TEST_CASE(instance_is_the_percent_encoded_path) {
    check_problem(client.request("GET", "/\"<\xc3\xa9>\\{|}^`?query"), 404, "not-found",
                  "/%22%3C%C3%A9%3E%5C%7B%7C%7D%5E%60");
    check_problem(client.request("GET", "/a%20b%/c%g0"), 404, "not-found", "/a%20b%25/c%25g0");
    check_problem(client.request("GET", "http://other.example/nowhere?x"), 404, "not-found", "/nowhere");
}

BOOST_AUTO_TEST_CASE(every_type_is_explained_under_its_own_path) {
    for (const auto& type : holdfast::http::problem_types()) {
        const auto explained = client.request("GET", "/problems/" + std::string(type.name));
        BOOST_TEST(explained.status == 200);
        BOOST_TEST(json_of(explained).at("status").as_int64() == type.status);
    }
}

BOOST_AUTO_TEST_SUITE_END()
