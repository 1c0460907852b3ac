// Contract, section 4: the requests, one case a row and a rule.

#include "support/http_expect.hpp"
#include "support/http_node.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

namespace {

using namespace holdfast::test;
using namespace std::chrono_literals;
namespace json = boost::json;

const std::string mine = R"({"owner":"me","ttl_seconds":30})";
const std::string yours = R"({"owner":"you","ttl_seconds":30})";

struct fixture {
    http_node node;
    http_client client = node.connect();

    json::object acquire(const std::string& body = mine, const http_client::header_list& headers = {}) {
        const auto answer = client.request("POST", "/locks/a", body, headers);
        BOOST_TEST(answer.status == 200, answer.status << ' ' << answer.body);
        BOOST_TEST(answer.header("Cache-Control") == "no-store");
        return json_of(answer);
    }
    std::int64_t token_of(const json::object& granted) {
        BOOST_REQUIRE(granted.at("acquired").as_bool());
        return granted.at("lock").at("fencing_token").as_int64();
    }
    http_answer look() { return client.request("GET", "/locks/a"); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(http_requests, fixture)

// ---- POST /locks/{resource}

BOOST_AUTO_TEST_CASE(acquire_grants_a_free_lock) {
    const auto answer = client.request("POST", "/locks/a", mine);
    BOOST_TEST(answer.status == 200);
    BOOST_TEST(answer.header("Content-Type") == "application/json");
    BOOST_TEST(answer.body ==
               R"({"acquired":true,"lock":{"resource":"a","owner":"me","acquired_at":"2024-05-06T07:08:09.000000Z",)"
               R"("expires_at":"2024-05-06T07:08:39.000000Z","expires_in_ms":30000,"fencing_token":1}})");
}

BOOST_AUTO_TEST_CASE(acquire_of_a_held_lock_is_refused_without_error) {
    acquire();
    node.advance(1500us);
    const auto answer = client.request("POST", "/locks/a", yours);
    BOOST_TEST(answer.status == 200);
    BOOST_TEST(answer.body == R"({"acquired":false,"resource":"a","retry_after_ms":29999})");
}

BOOST_AUTO_TEST_CASE(retry_after_ms_is_at_least_1) {
    acquire();
    node.advance(30s - 1us);
    BOOST_TEST(json_of(client.request("POST", "/locks/a", yours)).at("retry_after_ms").as_int64() == 1);
    node.advance(1us);
    BOOST_TEST(acquire(yours).at("acquired").as_bool());
}

BOOST_AUTO_TEST_CASE(the_holder_acquires_again_under_a_greater_token) {
    const auto first = acquire();
    node.advance(10s);
    const auto second = acquire();
    BOOST_TEST(token_of(second) > token_of(first));
    BOOST_TEST(second.at("lock").at("acquired_at").as_string() == "2024-05-06T07:08:19.000000Z");
    BOOST_TEST(second.at("lock").at("expires_in_ms").as_int64() == 30000);
}

BOOST_AUTO_TEST_CASE(times_have_six_digits_always) {
    node.advance(1us);
    const auto lock = acquire().at("lock").as_object();
    BOOST_TEST(lock.at("acquired_at").as_string() == "2024-05-06T07:08:09.000001Z");
    BOOST_TEST(lock.at("expires_at").as_string() == "2024-05-06T07:08:39.000001Z");
}

// ---- Idempotency-Key

BOOST_AUTO_TEST_CASE(the_same_key_gets_the_same_grant) {
    const http_client::header_list key{{"Idempotency-Key", "k-1"}};
    const auto first = acquire(mine, key);
    node.advance(10s);
    const auto second = acquire(R"({"owner":"me","ttl_seconds":5})", key);
    BOOST_TEST(token_of(second) == token_of(first));
    BOOST_TEST(second.at("lock").at("expires_in_ms").as_int64() == 20000);
    BOOST_TEST(token_of(acquire(mine, {{"Idempotency-Key", "K-1"}})) > token_of(first));
}

BOOST_AUTO_TEST_CASE(key_is_1_to_255_visible_ascii_characters) {
    token_of(acquire(mine, {{"Idempotency-Key", "!~" + std::string(253, 'k')}}));
    for (const std::string& key : {std::string(), std::string(256, 'k'), std::string("a b"), std::string("\xc3\xa9")})
        check_problem(client.request("POST", "/locks/a", mine, {{"Idempotency-Key", key}}), 400, "bad-request",
                      "/locks/a");
}

BOOST_AUTO_TEST_CASE(two_keys_are_400) {
    check_problem(client.request("POST", "/locks/a", mine, {{"Idempotency-Key", "k"}, {"idempotency-key", "k"}}), 400,
                  "bad-request", "/locks/a");
    check_problem(look(), 404, "not-found", "/locks/a");
}

BOOST_AUTO_TEST_CASE(key_is_ignored_on_other_requests) {
    acquire();
    const http_client::header_list keys{{"Idempotency-Key", "a b"}, {"Idempotency-Key", ""}};
    BOOST_TEST(client.request("GET", "/locks/a", "", keys).status == 200);
    BOOST_TEST(client.request("POST", "/locks/a/renew", mine, keys).status == 200);
    BOOST_TEST(client.request("DELETE", "/locks/a", R"({"owner":"me"})", keys).status == 204);
}

// ---- GET /locks/{resource}

BOOST_AUTO_TEST_CASE(look_shows_the_lock) {
    const auto granted = acquire();
    node.advance(1500us);
    const auto answer = look();
    BOOST_TEST(answer.status == 200);
    BOOST_TEST(answer.header("Cache-Control") == "no-store");
    auto expected = granted.at("lock").as_object();
    expected["expires_in_ms"] = 29998;
    BOOST_TEST((json_of(answer) == expected), answer.body);
}

BOOST_AUTO_TEST_CASE(look_at_an_absent_or_expired_lock_is_404) {
    check_problem(look(), 404, "not-found", "/locks/a");
    acquire();
    node.advance(30s);
    check_problem(look(), 404, "not-found", "/locks/a");
}

// ---- DELETE /locks/{resource} and POST /locks/{resource}/release

BOOST_AUTO_TEST_CASE(release_by_delete_and_by_post) {
    const auto release = [&](bool by_post, std::string_view body) {
        return by_post ? client.request("POST", "/locks/a/release", body) : client.request("DELETE", "/locks/a", body);
    };
    for (const bool by_post : {false, true}) {
        const std::string path = by_post ? "/locks/a/release" : "/locks/a";
        check_problem(release(by_post, R"({"owner":"me"})"), 404, "not-found", path);
        const auto token = token_of(acquire());
        check_problem(release(by_post, R"({"owner":"you"})"), 403, "forbidden", path);
        check_problem(release(by_post, R"({"owner":"me","fencing_token":)" + std::to_string(token + 1) + "}"), 403,
                      "forbidden", path);
        const auto released = release(by_post, R"({"owner":"me","fencing_token":)" + std::to_string(token) + "}");
        BOOST_TEST(released.status == 204);
        BOOST_TEST(released.body.empty());
        BOOST_TEST(!released.has("Content-Length"));
        BOOST_TEST(!released.has("Content-Type"));
        BOOST_TEST(released.header("Cache-Control") == "no-store");
        check_problem(release(by_post, R"({"owner":"me"})"), 404, "not-found", path);
    }
}

BOOST_AUTO_TEST_CASE(release_of_an_expired_lock_is_404) {
    acquire();
    node.advance(30s);
    check_problem(client.request("DELETE", "/locks/a", R"({"owner":"me"})"), 404, "not-found", "/locks/a");
}

// ---- POST /locks/{resource}/renew

BOOST_AUTO_TEST_CASE(renew_sets_the_end_and_keeps_the_rest) {
    const auto granted = acquire();
    node.advance(10s);
    const auto answer = client.request("POST", "/locks/a/renew", R"({"owner":"me","ttl_seconds":60})");
    BOOST_TEST(answer.status == 200);
    const auto lock = json_of(answer);
    BOOST_TEST(lock.at("acquired_at").as_string() == granted.at("lock").at("acquired_at").as_string());
    BOOST_TEST(lock.at("fencing_token").as_int64() == token_of(granted));
    BOOST_TEST(lock.at("expires_at").as_string() == "2024-05-06T07:09:19.000000Z");
    BOOST_TEST(lock.at("expires_in_ms").as_int64() == 60000);
}

BOOST_AUTO_TEST_CASE(renew_is_refused_to_others) {
    check_problem(client.request("POST", "/locks/a/renew", mine), 404, "not-found", "/locks/a/renew");
    const auto token = token_of(acquire());
    check_problem(client.request("POST", "/locks/a/renew", yours), 403, "forbidden", "/locks/a/renew");
    check_problem(
        client.request("POST", "/locks/a/renew",
                       R"({"owner":"me","ttl_seconds":30,"fencing_token":)" + std::to_string(token - 1) + "}"),
        403, "forbidden", "/locks/a/renew");
    node.advance(30s);
    check_problem(client.request("POST", "/locks/a/renew", mine), 404, "not-found", "/locks/a/renew");
}

// ---- the rest

BOOST_AUTO_TEST_CASE(healthz_never_asks_the_database) {
    node.store().now = faulty_store::fault::unavailable;
    node.readiness().is_ready = false;
    const auto answer = client.request("GET", "/healthz");
    BOOST_TEST(answer.status == 200);
    BOOST_TEST(answer.body == R"({"status":"ok"})");
    BOOST_TEST(node.store().asked == 0);
}

BOOST_AUTO_TEST_CASE(readyz_tells_readiness) {
    const auto ready = client.request("GET", "/readyz");
    BOOST_TEST(ready.status == 200);
    BOOST_TEST(ready.body == R"({"status":"ready"})");
    node.readiness().is_ready = false;
    check_problem(client.request("GET", "/readyz"), 503, "unavailable", "/readyz");
}

BOOST_AUTO_TEST_CASE(openapi_json_is_served) {
    const auto answer = client.request("GET", "/openapi.json");
    BOOST_TEST(answer.status == 200);
    BOOST_TEST(json_of(answer).at("openapi").as_string() == "3.1.0");
}

BOOST_AUTO_TEST_CASE(problems_explain_themselves) {
    const auto answer = client.request("GET", "/problems/outcome-unknown");
    BOOST_TEST(answer.status == 200);
    const auto type = json_of(answer);
    BOOST_TEST(type.at("type").as_string() == "/problems/outcome-unknown");
    BOOST_TEST(type.at("status").as_int64() == 503);
    BOOST_TEST(!type.at("meaning").as_string().empty());
    BOOST_TEST(!type.at("what_to_do").as_string().empty());
    check_problem(client.request("GET", "/problems/nonsense"), 404, "not-found", "/problems/nonsense");
}

BOOST_AUTO_TEST_CASE(a_lock_ends_by_itself_and_another_takes_over) {
    const auto first = token_of(acquire());
    node.advance(30s);
    BOOST_TEST(token_of(acquire(yours)) > first);
    check_problem(client.request("POST", "/locks/a/renew", mine), 403, "forbidden", "/locks/a/renew");
}

BOOST_AUTO_TEST_SUITE_END()
