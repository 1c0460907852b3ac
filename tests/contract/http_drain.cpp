// Contract, section 7, SIGTERM, as far as the HTTP layer does it; and the listener over real TCP.

#include "support/http_expect.hpp"
#include "support/http_node.hpp"

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace {

using namespace holdfast::test;
using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;

struct fixture {
    http_node node;
};

std::chrono::milliseconds since(steady::time_point start) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(steady::now() - start);
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(http_drain, fixture)

BOOST_AUTO_TEST_CASE(request_on_its_way_is_served_and_the_connection_closed) {
    auto client = node.connect();
    BOOST_TEST(client.request("GET", "/healthz").status == 200);
    node.begin_drain();
    std::this_thread::sleep_for(200ms);
    const auto last = client.request("GET", "/healthz");
    BOOST_TEST(last.status == 200);
    BOOST_TEST(last.header("Connection") == "close");
    BOOST_TEST(client.closed_within(2s));
}

BOOST_AUTO_TEST_CASE(idle_connections_end_after_the_grace) {
    auto client = node.connect();
    BOOST_TEST(client.request("GET", "/healthz").status == 200);
    const auto start = steady::now();
    node.begin_drain();
    BOOST_TEST(client.closed_within(5s));
    BOOST_TEST(since(start) >= 900ms);
    BOOST_TEST(since(start) < 3000ms);
    BOOST_TEST(node.empty_within(2s));
}

BOOST_AUTO_TEST_CASE(new_connections_are_served_with_close) {
    node.begin_drain();
    const auto answer = node.request("GET", "/healthz");
    BOOST_TEST(answer.status == 200);
    BOOST_TEST(answer.header("Connection") == "close");
}

BOOST_AUTO_TEST_CASE(what_does_not_end_is_cut_off) {
    node.store().now = faulty_store::fault::stuck;
    auto stuck = node.connect();
    stuck.send(http_client::format("GET", "/locks/a"));
    auto half = node.connect();
    half.send("GET /hea");
    BOOST_TEST(stuck.silent_for(50ms));
    node.cut_off();
    BOOST_TEST(stuck.closed_within(2s));
    BOOST_TEST(half.closed_within(2s));
    BOOST_TEST(node.empty_within(2s));
    BOOST_TEST(node.journal().lines("session_failed").empty());
}

// ---- over TCP

BOOST_AUTO_TEST_CASE(listener_serves_over_tcp) {
    const auto port = node.listen();
    auto client = http_client::connect("127.0.0.1", port);
    BOOST_TEST(client.request("POST", "/locks/a", R"({"owner":"me","ttl_seconds":30})").status == 200);
    BOOST_TEST(client.request("GET", "/locks/a").status == 200);
}

BOOST_AUTO_TEST_CASE(refusals_reach_the_client_over_tcp) {
    const auto port = node.listen();
    auto target = http_client::connect("127.0.0.1", port);
    BOOST_TEST(target.send(http_client::format("GET", "/locks/" + std::string(10'000'000, 'n'))));
    check_problem(target.read(), 414, "uri-too-long", "");
    BOOST_TEST(target.closed_within(2s));
    auto body = http_client::connect("127.0.0.1", port);
    BOOST_TEST(body.send(http_client::format("POST", "/locks/a", std::string(2'000'000, ' '))));
    check_problem(body.read(), 413, "payload-too-large", "/locks/a");
    BOOST_TEST(body.closed_within(2s));
    http_client::header_list headers(2000, {"X-Some-Header", "with a value"});
    auto many = http_client::connect("127.0.0.1", port);
    BOOST_TEST(many.send(http_client::format("GET", "/healthz", "", headers)));
    check_problem(many.read(), 431, "headers-too-large", "/healthz");
}

BOOST_AUTO_TEST_CASE(resets_do_not_end_the_listener) {
    const auto port = node.listen();
    for (int i = 0; i < 200; ++i) {
        auto client = http_client::connect("127.0.0.1", port);
        if (i % 2) client.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
        client.reset();
    }
    BOOST_TEST(http_client::connect("127.0.0.1", port).request("GET", "/healthz").status == 200);
}

BOOST_AUTO_TEST_CASE(running_out_of_descriptors_neither_ends_nor_spins_the_listener) {
    const auto port = node.listen();
    auto kept = http_client::connect("127.0.0.1", port);
    BOOST_TEST(kept.request("GET", "/healthz").status == 200);
    auto waiting = http_client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const int lowest_free = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(lowest_free);
    rlimit none = before;
    none.rlim_cur = static_cast<rlim_t>(lowest_free);
    ::setrlimit(RLIMIT_NOFILE, &none);

    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ::connect(waiting.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
    waiting.send(http_client::format("GET", "/healthz"));
    rusage start{};
    ::getrusage(RUSAGE_SELF, &start);
    const bool silent = waiting.silent_for(1500ms);
    rusage end{};
    ::getrusage(RUSAGE_SELF, &end);
    const auto still = kept.request("GET", "/healthz").status;
    ::setrlimit(RLIMIT_NOFILE, &before);

    BOOST_TEST(silent);
    BOOST_TEST(still == 200);
    const auto cpu_ms = [](const rusage& usage) {
        return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
               (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
    };
    BOOST_TEST(cpu_ms(end) - cpu_ms(start) < 500);
    BOOST_TEST(waiting.read().status == 200);
    const auto reports = node.journal().lines("accept_failed").size();
    BOOST_TEST(reports >= 1u);
    BOOST_TEST(reports <= 3u);
}

BOOST_AUTO_TEST_CASE(drain_ends_when_the_last_connection_is_gone) {
    const auto port = node.listen();
    auto client = http_client::connect("127.0.0.1", port);
    BOOST_TEST(client.request("GET", "/healthz").status == 200);
    const auto took = node.drain_listener(10s);
    BOOST_TEST(took >= 900ms);
    BOOST_TEST(took < 5000ms);
    BOOST_CHECK_THROW(http_client::connect("127.0.0.1", port), http_client_error);
}

BOOST_AUTO_TEST_CASE(drain_cuts_off_at_its_limit) {
    const auto port = node.listen();
    node.store().now = faulty_store::fault::stuck;
    auto client = http_client::connect("127.0.0.1", port);
    client.send(http_client::format("GET", "/locks/a"));
    BOOST_TEST(client.silent_for(100ms));
    const auto took = node.drain_listener(300ms);
    BOOST_TEST(took >= 300ms);
    BOOST_TEST(took < 3000ms);
    BOOST_TEST(client.closed_within(2s));
}

BOOST_AUTO_TEST_CASE(no_request_fails_while_the_listener_drains_under_load) {
    const auto port = node.listen();
    std::atomic<bool> stop{false};
    std::atomic<int> failed{0};
    std::atomic<int> served{0};
    std::atomic<int> closed_by_node{0};
    std::vector<std::thread> users;
    for (int i = 0; i < 4; ++i) {
        users.emplace_back([&] {
            try {
                auto client = http_client::connect("127.0.0.1", port);
                while (!stop) {
                    const auto answer = client.request("GET", "/healthz");
                    ++(answer.status == 200 ? served : failed);
                    if (answer.header("Connection") != "close") continue;
                    ++closed_by_node;
                    return;
                }
            } catch (const http_client_error&) {
                ++failed;
            }
        });
    }
    std::this_thread::sleep_for(200ms);
    node.drain_listener(10s);
    stop = true;
    for (auto& user : users)
        user.join();
    BOOST_TEST(failed == 0);
    BOOST_TEST(closed_by_node == 4);
    BOOST_TEST(served > 4);
}

BOOST_AUTO_TEST_SUITE_END()
