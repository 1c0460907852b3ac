// Contract, section 6: HTTP manners, and section 10 as far as it is about headers and log lines of requests.

#include "support/http_expect.hpp"
#include "support/http_node.hpp"

#include <boost/json/object.hpp>
#include <boost/test/unit_test.hpp>

#include <sys/socket.h>

namespace {

using namespace holdfast::test;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

const std::string mine = R"({"owner":"me","ttl_seconds":30})";

struct fixture {
    http_node node;
    http_client client = node.connect();
};

holdfast::http::server_settings quick_deadlines() {
    holdfast::http::server_settings settings;
    settings.header_deadline = 300ms;
    settings.body_deadline = 300ms;
    settings.write_deadline = 300ms;
    settings.idle_timeout = 300ms;
    return settings;
}

std::chrono::milliseconds since(steady::time_point start) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(steady::now() - start);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(http_manners, fixture)

// ---- keep-alive and pipelining

BOOST_AUTO_TEST_CASE(connection_is_kept) {
    for (int i = 0; i < 100; ++i) {
        const auto answer = client.request("GET", "/healthz");
        BOOST_REQUIRE(answer.status == 200);
        BOOST_TEST(answer.version == "HTTP/1.1");
        BOOST_TEST(!answer.has("Connection"));
    }
}

BOOST_AUTO_TEST_CASE(connection_is_kept_after_problems_with_and_without_body) {
    BOOST_TEST(client.request("POST", "/nowhere", mine).status == 404);
    BOOST_TEST(client.request("PUT", "/locks/a", mine).status == 405);
    BOOST_TEST(client.request("POST", "/locks/%zz", mine).status == 400);
    BOOST_TEST(client.request("POST", "/locks/a", mine, {{"Content-Type", "text/plain"}}).status == 415);
    BOOST_TEST(client.request("POST", "/locks/a", "{").status == 400);
    BOOST_TEST(client.request("POST", "/locks/a", "{}").status == 422);
    BOOST_TEST(client.request("GET", "/locks/a").status == 404);
    BOOST_TEST(client.request("OPTIONS", "/locks/a", mine).status == 204);
    BOOST_TEST(client.request("GET", "/healthz", mine).status == 200);
}

BOOST_AUTO_TEST_CASE(client_asks_for_the_close) {
    const auto answer = client.request("GET", "/healthz", "", {{"Connection", "close"}});
    BOOST_TEST(answer.header("Connection") == "close");
    BOOST_TEST(client.closed_within(2s));
}

BOOST_AUTO_TEST_CASE(fifty_mixed_requests_pipelined) {
    const std::vector<std::pair<std::string, int>> kinds{
        {http_client::format("POST", "/locks/a", mine), 200},
        {http_client::format("GET", "/locks/a"), 200},
        {http_client::format("POST", "/nowhere", mine), 404},
        {http_client::format("POST", "/locks/a", mine, {{"Content-Type", "text/plain"}}), 415},
        {http_client::format("POST", "/locks/a", "4\r\n{\"a\"\r\n3\r\n:1}\r\n0\r\n\r\n",
                             {{"Transfer-Encoding", "chunked"}}),
         422},
        {http_client::format("PUT", "/locks/a", "ignored"), 405},
        {"\r\n" + http_client::format("DELETE", "/locks/a", R"({"owner":"me"})"), 204},
        {http_client::format("OPTIONS", "/locks/a"), 204},
        {http_client::format("POST", "/locks/a", "{]"), 400},
        {http_client::format("GET", "/healthz", "", {{"X-Request-Id", "last"}}), 200},
    };
    std::string bytes;
    for (int i = 0; i < 50; ++i)
        bytes += kinds[static_cast<std::size_t>(i) % kinds.size()].first;

    for (const std::size_t piece : {bytes.size(), std::size_t{4096}, std::size_t{997}, std::size_t{1}}) {
        BOOST_TEST_INFO_SCOPE("in pieces of " << piece);
        auto piped = node.connect();
        BOOST_TEST(piped.send_slowly(bytes, piece, 0ms));
        for (int i = 0; i < 50; ++i) {
            const auto& [request, status] = kinds[static_cast<std::size_t>(i) % kinds.size()];
            const auto answer = piped.read();
            BOOST_TEST(answer.status == status, i << ": " << answer.status << ' ' << answer.body);
            BOOST_TEST((answer.header("X-Request-Id") == "last") == (i % 10 == 9));
        }
        BOOST_TEST(piped.silent_for(20ms));
    }
}

BOOST_AUTO_TEST_CASE(body_split_byte_by_byte) {
    client.send("POST /locks/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 31\r\n\r\n");
    client.send_slowly(mine, 1, 1ms);
    BOOST_TEST(client.read().status == 200);
}

BOOST_AUTO_TEST_CASE(what_follows_a_close_is_not_answered) {
    client.send(http_client::format("GET", "/healthz", "", {{"Connection", "close"}}) +
                http_client::format("GET", "/readyz"));
    BOOST_TEST(client.read().header("Connection") == "close");
    BOOST_TEST(client.closed_within(2s));
}

BOOST_AUTO_TEST_CASE(half_closed_client_gets_its_answers) {
    client.send(http_client::format("POST", "/locks/a", mine) + http_client::format("GET", "/locks/a"));
    client.shutdown_send();
    BOOST_TEST(client.read().status == 200);
    BOOST_TEST(client.read().status == 200);
    BOOST_TEST(client.closed_within(2s));
}

// ---- HTTP/1.0

BOOST_AUTO_TEST_CASE(http_1_0_is_answered_as_1_0_and_closed) {
    client.send("GET /healthz HTTP/1.0\r\n\r\n");
    const auto answer = client.read();
    BOOST_TEST(answer.version == "HTTP/1.0");
    BOOST_TEST(answer.header("Connection") == "close");
    BOOST_TEST(answer.body == R"({"status":"ok"})");
    BOOST_TEST(client.closed_within(2s));
}

BOOST_AUTO_TEST_CASE(http_1_0_keeps_alive_when_asked) {
    for (int i = 0; i < 3; ++i) {
        client.send(
            "POST /locks/a HTTP/1.0\r\nConnection: keep-alive\r\nContent-Type: application/json\r\nContent-Length: "
            "31\r\n\r\n" +
            mine);
        const auto answer = client.read();
        BOOST_TEST(answer.status == 200);
        BOOST_TEST(answer.version == "HTTP/1.0");
        BOOST_TEST(answer.header("Connection") == "keep-alive");
    }
}

BOOST_AUTO_TEST_CASE(http_1_0_gets_no_interim_answer) {
    client.send(
        "POST /locks/a HTTP/1.0\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: "
        "31\r\n\r\n");
    BOOST_TEST(client.silent_for(50ms));
    client.send(mine);
    BOOST_TEST(client.read_any().status == 200);
}

// ---- HEAD, OPTIONS, Expect

BOOST_AUTO_TEST_CASE(head_is_get_without_a_body) {
    client.request("POST", "/locks/held", mine);
    for (const std::string path : {"/locks/held", "/locks/free", "/locks/%00", "/healthz", "/readyz", "/openapi.json",
                                   "/problems/overloaded", "/nowhere", "/problems/none"}) {
        const http_client::header_list id{{"X-Request-Id", "same"}};
        const auto get = client.request("GET", path, "", id);
        const auto head = client.request("HEAD", path, "", id);
        BOOST_TEST(head.status == get.status);
        BOOST_TEST(head.body.empty());
        BOOST_TEST(head.header("Content-Length") == std::to_string(get.body.size()));
        BOOST_TEST(head.headers.size() == get.headers.size());
        for (const auto& [name, value] : get.headers)
            if (name != "Date") BOOST_TEST(head.header(name) == value, path << ' ' << name);
    }
    BOOST_TEST(client.silent_for(20ms));
}

BOOST_AUTO_TEST_CASE(options_is_204_with_allow) {
    const auto allow_of = [&](std::string_view path) {
        const auto answer = client.request("OPTIONS", path);
        BOOST_TEST(answer.status == 204);
        BOOST_TEST(answer.body.empty());
        return answer.header("Allow");
    };
    BOOST_TEST(allow_of("/locks/a") == "GET, HEAD, POST, DELETE, OPTIONS");
    BOOST_TEST(allow_of("/locks/a/renew") == "POST, OPTIONS");
    BOOST_TEST(allow_of("/locks/a/release") == "POST, OPTIONS");
    BOOST_TEST(allow_of("/healthz") == "GET, HEAD, OPTIONS");
    check_problem(client.request("OPTIONS", "/nowhere"), 404, "not-found", "/nowhere");
}

BOOST_AUTO_TEST_CASE(expect_100_continue_is_honoured) {
    client.send(
        "POST /locks/a HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Type: "
        "application/json\r\nContent-Length: "
        "31\r\n\r\n");
    BOOST_TEST(client.read_any().status == 100);
    client.send(mine);
    BOOST_TEST(client.read_any().status == 200);
    BOOST_TEST(client.request("GET", "/locks/a").status == 200);
}

BOOST_AUTO_TEST_CASE(no_interim_answer_when_the_body_is_there_or_absent) {
    client.send(
        "POST /locks/a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Type: "
        "application/json\r\nContent-Length: "
        "31\r\n\r\n" +
        mine);
    BOOST_TEST(client.read_any().status == 200);
    client.send(http_client::format("GET", "/healthz", "", {{"Expect", "100-continue"}}));
    BOOST_TEST(client.read_any().status == 200);
}

BOOST_AUTO_TEST_CASE(refused_expectation_gets_its_final_status_at_once) {
    const std::string waits = "Host: x\r\nExpect: 100-continue\r\nContent-Length: ";
    const auto check = [&](const std::string& start, const std::string& rest, int status) {
        auto waiting = node.connect();
        waiting.send(start + " HTTP/1.1\r\n" + waits + rest + "\r\n\r\n");
        const auto answer = waiting.read_any();
        BOOST_TEST(answer.status == status);
        BOOST_TEST(answer.header("Connection") == "close");
        BOOST_TEST(waiting.closed_within(2s));
    };
    check("POST /nowhere", "31", 404);
    check("PUT /locks/a", "31", 405);
    check("POST /locks/a", "31", 415);
    check("POST /locks/a", "31\r\nContent-Type: application/json\r\nHost: y", 400);
    check("POST /locks/a", "2000000\r\nContent-Type: application/json", 413);
}

// ---- deadlines

BOOST_AUTO_TEST_CASE(slow_header_is_408_however_the_bytes_drip) {
    http_node quick(quick_deadlines());
    auto slow = quick.connect();
    const auto start = steady::now();
    BOOST_TEST(slow.send_slowly("GET /healthz HTTP/1.1\r\nHost", 1, 25ms));
    check_problem(slow.read(), 408, "request-timeout", "");
    BOOST_TEST(since(start) < 2000ms);
    BOOST_TEST(slow.closed_within(3s));
}

BOOST_AUTO_TEST_CASE(slow_body_is_408_however_the_bytes_drip) {
    http_node quick(quick_deadlines());
    auto slow = quick.connect();
    slow.send("POST /locks/a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n");
    BOOST_TEST(slow.send_slowly(mine, 1, 25ms));
    check_problem(slow.read(), 408, "request-timeout", "/locks/a");
    BOOST_TEST(slow.closed_within(3s));
}

BOOST_AUTO_TEST_CASE(header_deadline_counts_from_the_first_byte) {
    http_node quick([] {
        auto settings = quick_deadlines();
        settings.idle_timeout = 10s;
        return settings;
    }());
    auto patient = quick.connect();
    BOOST_TEST(patient.silent_for(600ms));
    BOOST_TEST(patient.request("GET", "/healthz").status == 200);
    patient.send("\r\n");
    BOOST_TEST(patient.silent_for(600ms));
    BOOST_TEST(patient.request("GET", "/healthz").status == 200);
}

BOOST_AUTO_TEST_CASE(idle_connection_is_closed_without_a_word) {
    http_node quick(quick_deadlines());
    auto never_used = quick.connect();
    auto used = quick.connect();
    BOOST_TEST(used.request("GET", "/healthz").status == 200);
    BOOST_TEST(never_used.closed_within(3s));
    BOOST_TEST(used.closed_within(3s));
}

BOOST_AUTO_TEST_CASE(empty_lines_buy_no_patience) {
    http_node quick(quick_deadlines());
    auto never_used = quick.connect();
    auto used = quick.connect();
    BOOST_TEST(used.request("GET", "/healthz").status == 200);
    const auto start = steady::now();
    bool both_open = true;
    while (both_open && since(start) < 3s) {
        both_open =
            never_used.send("\r\n") && used.send("\r\n") && never_used.silent_for(25ms) && used.silent_for(25ms);
    }
    BOOST_TEST(never_used.closed_within(1s));
    BOOST_TEST(used.closed_within(1s));
    BOOST_TEST(since(start) < 3s);
}

BOOST_AUTO_TEST_CASE(time_of_the_database_is_not_time_of_the_client) {
    http_node quick(quick_deadlines());
    quick.store().now = faulty_store::fault::stuck;
    auto waiting = quick.connect();
    waiting.send(http_client::format("GET", "/locks/a"));
    BOOST_TEST(waiting.silent_for(800ms));
}

BOOST_AUTO_TEST_CASE(client_that_never_reads_is_dropped) {
    http_node quick(quick_deadlines());
    auto deaf = quick.connect();
    const int small = 4096;
    ::setsockopt(deaf.descriptor(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    std::string bytes;
    for (int i = 0; i < 200; ++i)
        bytes += http_client::format("GET", "/openapi.json");
    deaf.patience(500ms);
    try {
        deaf.send(bytes);
    } catch (const http_client_error&) {
        // The node does not read on either while it cannot write: that is the point.
    }
    BOOST_TEST(quick.empty_within(5s));
}

BOOST_AUTO_TEST_CASE(slow_neighbours_do_not_delay_anyone) {
    std::vector<http_client> slow;
    for (int i = 0; i < 50; ++i) {
        slow.push_back(node.connect());
        slow.back().send("POST /locks/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1");
    }
    const auto start = steady::now();
    for (int i = 0; i < 20; ++i)
        BOOST_TEST(client.request("GET", "/healthz").status == 200);
    BOOST_TEST(since(start) < 2000ms);
}

// ---- headers of every answer, and the log

BOOST_AUTO_TEST_CASE(request_id_is_taken_over_or_made) {
    const auto id_for = [&](const std::string& id) {
        return client.request("GET", "/locks/a", "", {{"X-Request-Id", id}}).header("X-Request-Id");
    };
    BOOST_TEST(id_for("abc-123") == "abc-123");
    BOOST_TEST(id_for(std::string(128, 'x')) == std::string(128, 'x'));
    for (const std::string& unfit : {std::string(), std::string(129, 'x'), std::string("a b"), std::string("\xc3\xa9")})
        BOOST_TEST(id_for(unfit).size() == 36u);
    const auto made = client.request("GET", "/healthz").header("X-Request-Id");
    BOOST_TEST(made.size() == 36u);
    BOOST_TEST(client.request("GET", "/healthz").header("X-Request-Id") != made);
}

BOOST_AUTO_TEST_CASE(no_store_on_every_lock_answer) {
    client.request("POST", "/locks/held", mine);
    for (const auto& [method, path] : std::vector<std::pair<std::string, std::string>>{{"GET", "/locks/held"},
                                                                                       {"HEAD", "/locks/held"},
                                                                                       {"GET", "/locks/free"},
                                                                                       {"POST", "/locks/held"},
                                                                                       {"DELETE", "/locks/held"},
                                                                                       {"PUT", "/locks/held"},
                                                                                       {"OPTIONS", "/locks/held"},
                                                                                       {"GET", "/locks/"}}) {
        client.send(http_client::format(method, path));
        BOOST_TEST(client.read(method).header("Cache-Control") == "no-store", method << ' ' << path);
    }
    BOOST_TEST(!client.request("GET", "/openapi.json").has("Cache-Control"));
}

BOOST_AUTO_TEST_CASE(every_answer_has_a_date) {
    const auto date = client.request("GET", "/healthz").header("Date");
    BOOST_TEST(date.size() == 29u);
    BOOST_TEST(date.ends_with(" GMT"));
}

BOOST_AUTO_TEST_CASE(failed_requests_are_logged) {
    node.store().now = faulty_store::fault::unavailable;
    client.request("GET", "/locks/a?q", "", {{"X-Request-Id", "id-1"}, {"traceparent", "00-abc-def-01"}});
    const auto lines = node.journal().lines("request");
    BOOST_REQUIRE(lines.size() == 1u);
    const auto& line = lines.front();
    BOOST_TEST(line.at("level") == "warning");
    BOOST_TEST(line.at("method") == "GET");
    BOOST_TEST(line.at("path") == "/locks/a");
    BOOST_TEST(line.at("status") == "503");
    BOOST_TEST(line.at("request_id") == "id-1");
    BOOST_TEST(line.at("traceparent") == "00-abc-def-01");
    BOOST_TEST(std::stod(line.at("duration_ms")) >= 0.0);
}

BOOST_AUTO_TEST_CASE(refused_requests_are_logged_at_debug_and_good_ones_not_at_all) {
    client.request("GET", "/healthz");
    BOOST_TEST(node.journal().lines("request").empty());
    client.request("GET", "/locks/" + std::string(5000, 'n'));
    const auto lines = node.journal().lines("request");
    BOOST_REQUIRE(lines.size() == 1u);
    BOOST_TEST(lines.front().at("level") == "debug");
    BOOST_TEST(lines.front().at("path").size() == 512u);
}

BOOST_AUTO_TEST_CASE(slow_requests_are_logged) {
    holdfast::http::server_settings settings;
    settings.slow_request = 0ms;
    http_node observed(settings);
    observed.request("GET", "/healthz");
    const auto lines = observed.journal().lines("request");
    BOOST_REQUIRE(lines.size() == 1u);
    BOOST_TEST(lines.front().at("level") == "info");
    BOOST_TEST(lines.front().at("status") == "200");
}

BOOST_AUTO_TEST_SUITE_END()
