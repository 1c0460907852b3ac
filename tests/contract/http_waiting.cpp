// Contract, section 8, as far as the HTTP layer does it: requests that wait, their answers, and clients that go away.

#include "support/http_expect.hpp"
#include "support/http_node.hpp"
#include "support/metrics_page.hpp"
#include "support/wait_until.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include <cstdio>
#include <ctime>

namespace {

using namespace holdfast::test;
using namespace std::chrono_literals;
using holdfast::tests::metrics_page;
using holdfast::tests::wait_until;
namespace json = boost::json;
using fault = faulty_store::fault;
using steady = std::chrono::steady_clock;

const std::string yours = R"({"owner":"you","ttl_seconds":30})";

std::string waiting(const std::string& owner = "me", int seconds = 30) {
    return R"({"owner":")" + owner + R"(","ttl_seconds":30,"wait_seconds":)" + std::to_string(seconds) + "}";
}

std::chrono::milliseconds since(steady::time_point start) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(steady::now() - start);
}

struct fixture {
    explicit fixture(std::size_t waiters_max = 10'000) : node({}, waiters_max) {
        // `a` is held by you: whoever waits for it stands in the queue that the test commands.
        node.request("POST", "/locks/a", yours);
    }

    /// Sends a request that waits, and comes back when it stands in line.
    void stand(http_client& client, const std::string& body = waiting(), const http_client::header_list& headers = {}) {
        stand_with(client, http_client::format("POST", "/locks/a", body, headers));
    }
    void stand_with(http_client& client, const std::string& bytes) {
        const auto before = node.queue().living();
        BOOST_TEST(client.send(bytes));
        BOOST_REQUIRE(wait_until(5s, [&] { return node.queue().living() == before + 1; }));
    }
    void check_granted(const http_answer& answer, std::string_view owner = "me") {
        BOOST_TEST(answer.status == 200, answer.status << ' ' << answer.body);
        const auto body = json_of(answer);
        BOOST_REQUIRE(body.at("acquired").as_bool());
        BOOST_TEST(body.at("lock").at("owner").as_string() == std::string(owner));
        BOOST_TEST(body.contains("waited_ms"));
    }
    /// The place is a kept one soon, and nothing was granted.
    void check_gone() {
        BOOST_TEST(wait_until(5s, [&] { return node.queue().withdrawn() == 1; }));
        node.offer("a");
        BOOST_TEST(node.queue().granted() == 0u);
        BOOST_TEST(node.queue().given_back() == 0u);
    }
    metrics_page page() { return metrics_page(node.request("GET", "/metrics").body); }

    http_node node;
};

struct two_waiters : fixture {
    two_waiters() : fixture(2) {}
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(http_waiting, fixture)

// ---- answers

BOOST_AUTO_TEST_CASE(a_free_lock_is_granted_at_once_with_waited_ms_0) {
    const auto body = json_of(node.request("POST", "/locks/free", waiting()));
    BOOST_TEST(body.at("acquired").as_bool());
    BOOST_TEST(body.at("waited_ms").as_int64() == 0);
}

BOOST_AUTO_TEST_CASE(who_does_not_ask_to_wait_hears_nothing_of_waiting) {
    for (const std::string& body : {std::string(R"({"owner":"me","ttl_seconds":30})"), waiting("me", 0)}) {
        BOOST_TEST(node.request("POST", "/locks/a", body).body ==
                   R"({"acquired":false,"resource":"a","retry_after_ms":30000})");
        BOOST_TEST(!json_of(node.request("POST", "/locks/free", body)).contains("waited_ms"));
    }
    BOOST_TEST(node.queue().living() == 0u);
}

BOOST_AUTO_TEST_CASE(a_waiter_is_answered_when_it_is_granted) {
    auto client = node.connect();
    stand(client);
    BOOST_TEST(client.silent_for(200ms));
    node.offer("a");
    const auto answer = client.read();
    check_granted(answer);
    BOOST_TEST(!answer.has("Connection"));
    const auto waited = json_of(answer).at("waited_ms").as_int64();
    BOOST_TEST((waited >= 200 && waited < 5'000), waited);
    BOOST_TEST(node.queue().withdrawn() == 0u);
}

BOOST_AUTO_TEST_CASE(time_up_tells_position_and_how_long_the_place_is_kept) {
    auto first = node.connect();
    stand(first, waiting("first"));
    const auto start = steady::now();
    const auto answer = node.request("POST", "/locks/a", waiting("me", 1));
    BOOST_TEST(since(start) >= 1000ms);
    BOOST_TEST(since(start) < 3000ms);
    const auto body = json_of(answer);
    BOOST_TEST(answer.status == 200);
    BOOST_TEST(!body.at("acquired").as_bool());
    BOOST_TEST(body.at("resource").as_string() == "a");
    BOOST_TEST(body.at("retry_after_ms").as_int64() >= 1);
    BOOST_TEST(body.at("position").as_int64() == 2);
    BOOST_TEST(body.at("place_kept_ms").as_int64() == 5000);
    BOOST_TEST(body.size() == 5u);
}

BOOST_AUTO_TEST_CASE(asking_again_answers_the_older_request_at_once) {
    auto older = node.connect();
    auto newer = node.connect();
    stand(older);
    newer.send(http_client::format("POST", "/locks/a", waiting()));
    const auto body = json_of(older.read());
    BOOST_TEST(!body.at("acquired").as_bool());
    BOOST_TEST(!body.contains("place_kept_ms"));
    node.offer("a");
    check_granted(newer.read());
}

BOOST_AUTO_TEST_CASE(wait_seconds_is_an_integer_from_0_to_50) {
    const auto check = [&](const std::string& literal, const std::string& code) {
        check_invalid(
            node.request("POST", "/locks/a", R"({"owner":"me","ttl_seconds":30,"wait_seconds":)" + literal + "}"),
            {"wait_seconds:" + code});
    };
    for (const char* literal : {"-1", "51", "9999999999999999999999"})
        check(literal, "out_of_range");
    for (const char* literal : {"1.0", "1e1", R"("1")", "true", "null", "[1]"})
        check(literal, "invalid");
    check(R"(1,"wait_seconds":1)", "repeated");
    check_invalid(node.request("POST", "/locks/a", R"({"wait_seconds":51})"),
                  {"owner:required", "ttl_seconds:required", "wait_seconds:out_of_range"});
    for (const char* path : {"/locks/a/renew", "/locks/a/release", "/locks/a/queue/leave"})
        BOOST_TEST(errors_of(node.request("POST", path, waiting())).back() == "wait_seconds:unknown");
    BOOST_TEST(node.queue().living() == 0u);
}

BOOST_AUTO_TEST_CASE(a_full_queue_is_429) {
    node.queue().places_max = 1;
    auto first = node.connect();
    stand(first, waiting("first"));
    check_problem(node.request("POST", "/locks/a", waiting()), 429, "queue-full", "/locks/a");
    BOOST_TEST(node.request("GET", "/problems/queue-full").status == 200);
}

BOOST_FIXTURE_TEST_CASE(more_waiters_than_a_node_may_have_are_overloaded, two_waiters) {
    auto first = node.connect();
    auto second = node.connect();
    stand(first, waiting("1"));
    stand(second, waiting("2"));
    check_problem(node.request("POST", "/locks/a", waiting("3")), 503, "overloaded", "/locks/a");
    first.close();
    BOOST_TEST(wait_until(5s, [&] { return node.queue().withdrawn() == 1; }));
    auto third = node.connect();
    stand(third, waiting("3"));
}

BOOST_AUTO_TEST_CASE(failures_of_the_queue_are_those_of_every_write) {
    const auto check = [&](fault kind, int status, std::string_view name) {
        node.fail_with(kind);
        node.store().now = fault::none;
        check_problem(node.request("POST", "/locks/a", waiting()), status, name, "/locks/a");
        check_problem(node.request("DELETE", "/locks/a/queue", R"({"owner":"me"})"), status, name, "/locks/a/queue");
    };
    check(fault::unavailable, 503, "unavailable");
    check(fault::overloaded, 503, "overloaded");
    check(fault::outcome_unknown, 503, "outcome-unknown");
    check(fault::internal, 500, "internal-error");
    node.fail_with(fault::exception);
    check_problem(node.request("DELETE", "/locks/a/queue", R"({"owner":"me"})"), 500, "internal-error",
                  "/locks/a/queue");
    node.fail_with(fault::none);
    node.queue().has_node = false;
    const auto answer = node.request("POST", "/locks/a", waiting());
    check_problem(answer, 503, "unavailable", "/locks/a");
    BOOST_TEST(!answer.has("Connection"));
}

// ---- leaving

BOOST_AUTO_TEST_CASE(who_leaves_is_answered_at_once) {
    const std::vector<std::pair<std::string, std::string>> ways{{"DELETE", "/locks/a/queue"},
                                                                {"POST", "/locks/a/queue/leave"}};
    for (const auto& [method, target] : ways) {
        auto client = node.connect();
        stand(client);
        const auto left = node.request(method, target, R"({"owner":" me "})");
        BOOST_TEST(left.status == 204);
        BOOST_TEST(left.header("Cache-Control") == "no-store");
        const auto body = json_of(client.read());
        BOOST_TEST(!body.at("acquired").as_bool());
        BOOST_TEST(!body.contains("position"));
        check_problem(node.request(method, target, R"({"owner":"me"})"), 404, "not-found", target);
    }
}

BOOST_AUTO_TEST_CASE(leaving_is_checked_like_every_request) {
    const auto leave = [&](const std::string& body, const http_client::header_list& headers = {}) {
        return node.request("POST", "/locks/a/queue/leave", body, headers);
    };
    check_invalid(leave("{}"), {"owner:required"});
    check_invalid(leave(""), {"owner:required"});
    check_invalid(leave(R"({"owner":"me","fencing_token":1})"), {"fencing_token:unknown"});
    check_problem(leave("{"), 400, "invalid-json", "/locks/a/queue/leave");
    check_problem(leave("{}", {{"Content-Type", "text/plain"}}), 415, "unsupported-media-type", "/locks/a/queue/leave");
    check_invalid(node.request("DELETE", "/locks/%00/queue", R"({"owner":"me"})"), {"resource:invalid"});
    const auto get = node.request("GET", "/locks/a/queue");
    check_problem(get, 405, "method-not-allowed", "/locks/a/queue");
    BOOST_TEST(get.header("Allow") == "DELETE, OPTIONS");
    BOOST_TEST(node.request("OPTIONS", "/locks/a/queue/leave").header("Allow") == "POST, OPTIONS");
    BOOST_TEST(node.request("HEAD", "/locks/a/queue").status == 405);
}

// ---- clients that go away

BOOST_AUTO_TEST_CASE(a_client_that_closes_is_never_granted) {
    auto client = node.connect();
    stand(client);
    client.close();
    check_gone();
    BOOST_TEST(node.empty_within(5s));
    BOOST_TEST(node.journal().lines("session_failed").empty());
}

BOOST_AUTO_TEST_CASE(a_client_that_half_closes_is_gone) {
    auto client = node.connect();
    stand(client);
    client.shutdown_send();
    check_gone();
    BOOST_TEST(client.closed_within(5s));
}

BOOST_AUTO_TEST_CASE(a_client_that_half_closed_before_it_stood_is_gone) {
    auto client = node.connect();
    client.send(http_client::format("POST", "/locks/a", waiting()));
    client.shutdown_send();
    BOOST_TEST(client.closed_within(5s));
    BOOST_TEST(wait_until(5s, [&] { return node.queue().living() == 0; }));
    node.offer("a");
    BOOST_TEST(node.queue().granted() == 0u);
}

BOOST_AUTO_TEST_CASE(over_tcp_close_half_close_and_reset_are_noticed) {
    const auto port = node.listen();
    std::size_t withdrawn = 0;
    for (const auto end : {&http_client::close, &http_client::shutdown_send, &http_client::reset}) {
        auto client = http_client::connect("127.0.0.1", port);
        stand(client);
        BOOST_TEST(client.silent_for(50ms));
        (client.*end)();
        ++withdrawn;
        BOOST_TEST(wait_until(5s, [&] { return node.queue().withdrawn() == withdrawn; }));
    }
    node.offer("a");
    BOOST_TEST(node.queue().granted() == 0u);
}

BOOST_AUTO_TEST_CASE(a_grant_that_meets_a_client_just_gone_is_given_back) {
    const auto port = node.listen();
    for (std::size_t round = 1; round <= 20; ++round) {
        auto client = http_client::connect("127.0.0.1", port);
        stand(client);
        // The node cannot see the end of the client before it has been granted the lock.
        node.on_io_thread([&] {
            client.close();
            node.queue().wake(node.queue().offer("a"));
        });
        BOOST_TEST(wait_until(5s, [&] { return node.queue().living() == 0; }));
        BOOST_TEST(wait_until(
            5s, [&] { return node.queue().granted() == node.queue().given_back() && node.queue().living() == 0; }));
        BOOST_TEST(node.queue().granted() + node.queue().withdrawn() == round);
    }
    BOOST_TEST(node.queue().given_back() > 0u);
}

BOOST_AUTO_TEST_CASE(a_lock_that_was_free_is_given_back_too_also_under_a_key) {
    const auto ask_and_go = [&](const http_client::header_list& headers) {
        auto client = node.connect();
        node.on_io_thread([&] {
            client.send(http_client::format("POST", "/locks/free", waiting(), headers));
            client.shutdown_send();
        });
        BOOST_TEST(client.closed_within(5s));
    };
    // Unless it has been answered again meanwhile, which the database knows.
    ask_and_go({});
    BOOST_TEST(wait_until(5s, [&] { return node.queue().given_back() == 1; }));
    ask_and_go({{"Idempotency-Key", "k"}});
    BOOST_TEST(wait_until(5s, [&] { return node.queue().given_back() == 2; }));
    BOOST_TEST(node.queue().released() == 0u);
}

BOOST_AUTO_TEST_CASE(a_connection_that_is_cut_off_leaves_a_kept_place) {
    auto client = node.connect();
    stand(client);
    node.cut_off();
    BOOST_TEST(client.closed_within(2s));
    check_gone();
    BOOST_TEST(node.journal().lines("session_failed").empty());
}

BOOST_AUTO_TEST_CASE(a_place_that_was_left_by_a_lost_connection_is_taken_over) {
    auto lost = node.connect();
    stand(lost);
    lost.close();
    BOOST_TEST(wait_until(5s, [&] { return node.queue().withdrawn() == 1; }));
    auto client = node.connect();
    stand(client);
    node.offer("a");
    check_granted(client.read());
}

// ---- what is sent behind a request that waits

BOOST_AUTO_TEST_CASE(requests_behind_a_waiting_one_are_answered_after_it) {
    auto client = node.connect();
    const std::string next = http_client::format("GET", "/locks/a") + http_client::format("GET", "/healthz");
    stand_with(client, http_client::format("POST", "/locks/a", waiting()) + next);
    BOOST_TEST(client.silent_for(100ms));
    client.send(next);
    BOOST_TEST(client.silent_for(100ms));
    client.send("GET /lo");
    BOOST_TEST(client.silent_for(100ms));
    node.offer("a");
    check_granted(client.read());
    for (int i = 0; i < 2; ++i) {
        BOOST_TEST(json_of(client.read()).at("resource").as_string() == "a");
        BOOST_TEST(client.read().body == R"({"status":"ok"})");
    }
    client.send("cks/b HTTP/1.1\r\nHost: x\r\n\r\n");
    BOOST_TEST(client.read().status == 404);
}

BOOST_AUTO_TEST_CASE(more_than_the_buffer_holds_waits_in_the_socket_and_is_answered) {
    const auto port = node.listen();
    auto client = http_client::connect("127.0.0.1", port);
    stand(client);
    const std::string one = http_client::format("GET", "/healthz");
    const std::size_t many = 100'000 / one.size();
    std::string all;
    for (std::size_t i = 0; i < many; ++i)
        all += one;
    client.send(all);
    BOOST_TEST(client.silent_for(600ms));
    node.offer("a");
    check_granted(client.read());
    for (std::size_t i = 0; i < many; ++i)
        BOOST_REQUIRE(client.read().status == 200);
}

BOOST_AUTO_TEST_CASE(a_client_behind_a_full_buffer_is_noticed_when_it_goes) {
    const auto port = node.listen();
    const std::string junk(100'000, 'x');
    std::size_t withdrawn = 0;
    for (const auto end : {&http_client::close, &http_client::shutdown_send, &http_client::reset}) {
        auto client = http_client::connect("127.0.0.1", port);
        stand(client);
        client.send(junk);
        BOOST_TEST(client.silent_for(300ms));
        (client.*end)();
        ++withdrawn;
        BOOST_TEST(wait_until(5s, [&] { return node.queue().withdrawn() == withdrawn; }));
    }
}

BOOST_AUTO_TEST_CASE(a_client_whose_end_could_not_be_seen_is_given_up) {
    const auto port = node.listen();
    auto client = http_client::connect("127.0.0.1", port);
    stand(client);
    bool was_taken = true;
    std::jthread sender([&] { was_taken = client.send(std::string(16'000'000, 'x')); });
    BOOST_TEST(wait_until(5s, [&] { return node.queue().withdrawn() == 1u; }));
    sender.join();
    BOOST_TEST(!was_taken);
}

BOOST_AUTO_TEST_CASE(a_waiting_connection_with_a_full_buffer_costs_no_processor_time) {
    const auto port = node.listen();
    auto client = http_client::connect("127.0.0.1", port);
    stand(client);
    client.send(std::string(100'000, 'x'));
    BOOST_TEST(client.silent_for(100ms));
    const auto cpu = [] { return std::clock() * 1000 / CLOCKS_PER_SEC; };
    const auto before = cpu();
    BOOST_TEST(client.silent_for(1000ms));
    BOOST_TEST(cpu() - before < 300);
}

BOOST_AUTO_TEST_CASE(one_connection_waits_many_times_between_other_requests) {
    auto client = node.connect();
    for (int i = 0; i < 50; ++i) {
        stand(client);
        node.offer("a");
        check_granted(client.read());
        BOOST_TEST(client.request("GET", "/healthz").status == 200);
        BOOST_TEST(json_of(client.request("POST", "/locks/free", waiting("me", 5))).at("acquired").as_bool());
    }
    client.close();
    BOOST_TEST(node.empty_within(5s));
    BOOST_TEST(node.queue().given_back() == 0u);
    BOOST_TEST(node.queue().withdrawn() == 0u);
}

// ---- framing

BOOST_AUTO_TEST_CASE(the_largest_body_and_a_chunked_one_may_wait) {
    auto large = node.connect();
    stand(large, waiting("large") + std::string(16 * 1024 - waiting("large").size(), ' '));
    auto chunked = node.connect();
    const std::string body = waiting("chunked");
    char size[8];
    std::snprintf(size, sizeof size, "%zx", body.size());
    stand_with(chunked,
               "POST /locks/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
               "X-Request-Id: its-own\r\n\r\n" +
                   std::string(size) + "\r\n" + body + "\r\n0\r\n\r\n");
    node.offer("a");
    check_granted(large.read(), "large");
    node.offer("a");
    const auto answer = chunked.read();
    check_granted(answer, "chunked");
    BOOST_TEST(answer.header("X-Request-Id") == "its-own");
}

BOOST_AUTO_TEST_CASE(http_1_0_is_answered_and_closed) {
    auto client = node.connect();
    const std::string body = waiting();
    stand_with(client, "POST /locks/a HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: " +
                           std::to_string(body.size()) + "\r\n\r\n" + body);
    node.offer("a");
    const auto answer = client.read();
    BOOST_TEST(answer.version == "HTTP/1.0");
    check_granted(answer);
    BOOST_TEST(client.closed_within(5s));
    BOOST_TEST(node.queue().given_back() == 0u);
}

BOOST_AUTO_TEST_CASE(expect_100_continue_and_connection_close) {
    auto client = node.connect();
    const std::string body = waiting();
    client.send(
        "POST /locks/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
        "Expect: 100-continue\r\nContent-Length: " +
        std::to_string(body.size()) + "\r\n\r\n");
    BOOST_TEST(client.read_any().status == 100);
    stand_with(client, body);
    node.offer("a");
    const auto answer = client.read();
    check_granted(answer);
    BOOST_TEST(answer.header("Connection") == "close");
    BOOST_TEST(client.closed_within(5s));
}

// ---- the end of the node

BOOST_AUTO_TEST_CASE(a_node_that_ends_sends_its_waiters_elsewhere_at_once) {
    auto client = node.connect();
    auto other = node.connect();
    stand(client);
    const auto start = steady::now();
    node.drain_waiters();
    const auto answer = client.read();
    BOOST_TEST(since(start) < 1000ms);
    check_problem(answer, 503, "unavailable", "/locks/a");
    BOOST_TEST(answer.header("Connection") == "close");
    BOOST_TEST(client.closed_within(2s));
    BOOST_TEST(wait_until(5s, [&] { return node.queue().withdrawn() == 1; }));
    // New ones are refused; what need not wait is served on.
    BOOST_TEST(other.request("GET", "/locks/a").status == 200);
    BOOST_TEST(json_of(other.request("POST", "/locks/free", waiting())).at("acquired").as_bool());
    const auto refused = other.request("POST", "/locks/a", waiting());
    check_problem(refused, 503, "unavailable", "/locks/a");
    BOOST_TEST(refused.header("Connection") == "close");
    BOOST_TEST(other.closed_within(2s));
}

BOOST_AUTO_TEST_CASE(a_waiter_that_is_granted_while_the_listener_drains_gets_its_answer) {
    auto client = node.connect();
    stand(client);
    node.begin_drain();
    BOOST_TEST(client.silent_for(1200ms));
    node.offer("a");
    const auto answer = client.read();
    check_granted(answer);
    BOOST_TEST(answer.header("Connection") == "close");
}

// ---- what is written down

BOOST_AUTO_TEST_CASE(waiting_is_not_slowness) {
    const auto before = page();
    BOOST_TEST(json_of(node.request("POST", "/locks/a", waiting("me", 1))).contains("position"));
    BOOST_TEST(node.journal().lines("request").empty());
    const auto after = page();
    BOOST_TEST(after.value(R"(holdfast_http_requests_total{route="acquire_waiting",status="200"})") == 1);
    BOOST_TEST(after.value(R"(holdfast_http_requests_total{route="acquire",status="200"})") ==
               before.value(R"(holdfast_http_requests_total{route="acquire",status="200"})"));
    BOOST_TEST(after.value(R"(holdfast_http_request_duration_seconds_bucket{route="acquire_waiting",le="0.5"})") == 0);
    BOOST_TEST(after.value(R"(holdfast_http_request_duration_seconds_bucket{route="acquire_waiting",le="10"})") == 1);
}

BOOST_AUTO_TEST_SUITE_END()
