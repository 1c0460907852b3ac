// The load generator and its HTTP client against a server that says what each case makes it say, and against the HTTP
// layer of a node.
#include "holdfast/cli/load_report_text.hpp"
#include "holdfast/cli/load_test.hpp"
#include "holdfast/cli/subcommands.hpp"
#include "holdfast/client/http_connection.hpp"
#include "holdfast/domain/timestamp.hpp"

#include "support/http_node.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <boost/asio/write.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/test/unit_test.hpp>

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace holdfast;
using namespace std::chrono_literals;
using boost::system::error_code;

namespace {

/// What to send for a request (header and body as they came); nothing: hang up.
using script = std::function<std::optional<std::string>(const std::string& request)>;

/// The same for answers that come later: takes what to send, on the server's thread.
using reply = std::function<void(std::optional<std::string>)>;
using patient_script = std::function<void(asio::io_context& io, const std::string& request, reply reply)>;

patient_script at_once(script script) {
    return [script = std::move(script)](asio::io_context&, const std::string& request, const reply& reply) {
        reply(script(request));
    };
}

std::string http_answer(const std::string& status, const std::string& body, const std::string& more_fields = "") {
    return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + more_fields + "\r\n" +
           body;
}

/// Listens on a free loopback port and answers on a thread of its own.
class scripted_server {
public:
    explicit scripted_server(script script) : scripted_server(at_once(std::move(script)), 0) {}
    /// Answers to such a script may wait; a client that goes meanwhile is not noticed.
    scripted_server(patient_script script, int) : script_(std::move(script)), listener_(io_, loopback()) {
        asio::co_spawn(io_, accept(), [](std::exception_ptr) {});
        thread_ = std::thread([this] { io_.run(); });
    }
    ~scripted_server() {
        io_.stop();
        thread_.join();
        script_ = {};  // With whatever it keeps on the context.
    }
    scripted_server(const scripted_server&) = delete;
    scripted_server& operator=(const scripted_server&) = delete;

    tcp::endpoint endpoint() const { return listener_.local_endpoint(); }

    client::server_url url() const {
        const std::uint16_t port = endpoint().port();
        return {"127.0.0.1", port, "127.0.0.1:" + std::to_string(port)};
    }

    int connections() const { return connections_; }

private:
    static tcp::endpoint loopback() { return {asio::ip::address_v4::loopback(), 0}; }

    asio::awaitable<void> accept() {
        for (;;) {
            tcp::socket socket = co_await listener_.async_accept(asio::use_awaitable);
            ++connections_;
            asio::co_spawn(io_, serve(std::move(socket)), [](std::exception_ptr) {});
        }
    }

    asio::awaitable<void> serve(tcp::socket socket) {
        std::string received;
        for (;;) {
            std::size_t size = co_await asio::async_read_until(socket, asio::dynamic_buffer(received), "\r\n\r\n",
                                                               asio::use_awaitable);
            size += body_size(received.substr(0, size));
            while (received.size() < size) {
                char chunk[4096];
                const std::size_t got = co_await socket.async_read_some(asio::buffer(chunk), asio::use_awaitable);
                received.append(chunk, got);
            }
            const auto said = std::make_shared<slot>(io_);
            script_(io_, received.substr(0, size), [said](std::optional<std::string> text) {
                said->text = std::move(text);
                said->is_there = true;
                said->arrival.cancel();
            });
            received.erase(0, size);
            while (!said->is_there)
                co_await said->arrival.async_wait(asio::as_tuple(asio::use_awaitable));
            if (!said->text) co_return;
            co_await asio::async_write(socket, asio::buffer(*said->text), asio::use_awaitable);
            if (said->text->find("Connection: close") != std::string::npos) co_return;
        }
    }

    struct slot {
        explicit slot(asio::io_context& io) : arrival(io, asio::steady_timer::time_point::max()) {}

        std::optional<std::string> text;
        bool is_there = false;
        asio::steady_timer arrival;
    };

    static std::size_t body_size(const std::string& header) {
        const std::size_t at = header.find("Content-Length: ");
        return at == std::string::npos ? 0 : std::stoul(header.substr(at + 16));
    }

    patient_script script_;
    asio::io_context io_{1};
    tcp::acceptor listener_;
    std::atomic<int> connections_{0};
    std::thread thread_;
};

struct seen {
    unsigned status = 0;
    std::string body;
    error_code fault;
    bool is_open_after = false;
};

asio::awaitable<seen> exchange_once(client::http_connection& connection) {
    const auto answered = co_await connection.exchange("GET", "/", {});
    seen seen;
    if (answered) {
        seen.status = answered->status;
        seen.body = answered->body;
    } else {
        seen.fault = answered.error();
    }
    seen.is_open_after = connection.is_open();
    co_return seen;
}

asio::awaitable<seen> open_and_exchange(client::http_connection& connection) {
    if (const error_code fault = co_await connection.open()) {
        seen seen;
        seen.fault = fault;
        co_return seen;
    }
    co_return co_await exchange_once(connection);
}

/// Runs `task` to its end.
seen run(asio::io_context& io, asio::awaitable<seen> task) {
    auto done = asio::co_spawn(io, std::move(task), asio::use_future);
    io.restart();
    io.run_for(30s);
    BOOST_REQUIRE((done.wait_for(0s) == std::future_status::ready));
    return done.get();
}

seen ask(const scripted_server& server) {
    asio::io_context io(1);
    client::http_connection connection(io.get_executor(), server.endpoint(), "test");
    return run(io, open_and_exchange(connection));
}

client::server_url url_of(std::uint16_t port) {
    return {"127.0.0.1", port, "127.0.0.1:" + std::to_string(port)};
}

cli::load_plan short_plan(cli::load_kind kind, const client::server_url& server) {
    cli::load_plan plan;
    plan.kind = kind;
    plan.servers = {server};
    plan.connections = 4;
    plan.warmup = 0s;
    plan.length = 1s;
    return plan;
}

cli::load_plan short_plan(cli::load_kind kind, const scripted_server& server) {
    return short_plan(kind, server.url());
}

/// So many looks a second are due at a server that `connections` can ask at the same time.
cli::load_plan open_loop(std::int64_t per_second, std::size_t connections, const scripted_server& server) {
    cli::load_plan plan = short_plan(cli::load_kind::look, server);
    plan.rounds_per_second = per_second;
    plan.connections = connections;
    return plan;
}

std::uint64_t count_of(const cli::load_report& report, std::string_view kind) {
    const auto found = report.latencies.find(kind);
    return found == report.latencies.end() ? 0 : found->second.count();
}

boost::json::object parsed(const cli::load_plan& plan, const cli::load_report& report) {
    return boost::json::parse(cli::to_json(plan, report)).as_object();
}

std::string member_of(const std::string& request, const std::string& name) {
    const std::size_t body = request.find("\r\n\r\n") + 4;
    return boost::json::serialize(boost::json::parse(request.substr(body)).as_object().at(name));
}

std::string resource_of(const std::string& request) {
    const std::size_t start = request.find("/locks/") + 7;
    return request.substr(start, request.find(' ', start) - start);
}

/// A well-behaved server of leases that nobody else wants; the token of every grant is 7.
std::optional<std::string> grant_everything(const std::string& request) {
    if (request.starts_with("POST /locks/"))
        return http_answer("200 OK", "{\"acquired\":true,\"lock\":{\"resource\":\"" + resource_of(request) +
                                         "\",\"owner\":" + member_of(request, "owner") + ",\"fencing_token\":7}}");
    if (request.starts_with("DELETE /locks/") && member_of(request, "fencing_token") == "7")
        return "HTTP/1.1 204 No Content\r\n\r\n";
    if (request.starts_with("GET /healthz")) return http_answer("200 OK", "{}");
    return http_answer("404 Not Found", R"({"type":"/problems/not-found"})");
}

// ---- a server with waiting lines ----

/// Locks that are waited for, first come first served, with the fault that a case wants. Lives on the thread of its
/// server, and outlives it.
class lines {
public:
    enum class fault {
        none,
        repeats_tokens,
        grants_what_is_held,  ///< To who asks second.
        refuses_waiters,      ///< At once, with a waiter's refusal.
        forgets_waiters,      ///< After some grants nobody is granted anything any more.
    };

    explicit lines(fault fault) : fault_(fault) {}

    /// The lines are empty again when the last copy of the script is gone: their timers are the server's.
    patient_script script() {
        std::shared_ptr<void> end(nullptr, [this](void*) { lines_.clear(); });
        return [this, end](asio::io_context& io, const std::string& request, reply reply) {
            answer(io, request, std::move(reply));
        };
    }

    std::atomic<int> held{0};
    std::atomic<int> grants{0};

private:
    struct waiter {
        std::string resource;
        std::string quoted_owner;
        std::int64_t ttl_seconds;
        std::chrono::steady_clock::time_point arrived;
        reply answer;
        asio::steady_timer time;  // until it is up, then until its lease has ended
        bool is_answered = false;
    };
    using waiter_handle = std::shared_ptr<waiter>;
    struct line {
        std::int64_t token = 0;  // of the holder, 0 while it is free
        std::deque<waiter_handle> waiters;
    };

    void answer(asio::io_context& io, const std::string& request, reply reply) {
        if (request.starts_with("GET /healthz")) return reply(http_answer("200 OK", "{}"));
        if (request.starts_with("DELETE")) return release(request, reply);
        if (request.find("/renew ") != std::string::npos) return renew(request, reply);
        stand(io, request, std::move(reply));
    }

    void stand(asio::io_context& io, const std::string& request, reply reply) {
        const std::string resource = resource_of(request);
        const auto arriving = std::make_shared<waiter>(
            waiter{resource, member_of(request, "owner"), std::stol(member_of(request, "ttl_seconds")),
                   std::chrono::steady_clock::now(), std::move(reply), asio::steady_timer(io)});
        if (fault_ == fault::refuses_waiters && lines_[resource].token != 0) return refuse(*arriving);
        arriving->time.expires_after(std::chrono::seconds(std::stol(member_of(request, "wait_seconds"))));
        arriving->time.async_wait([this, arriving](error_code cancelled) {
            if (!cancelled && !arriving->is_answered) refuse(*arriving);
        });
        lines_[resource].waiters.push_back(arriving);
        if (fault_ == fault::grants_what_is_held) lines_[resource].token = 0;
        hand_over(resource);
    }

    void refuse(waiter& waiter) {
        waiter.is_answered = true;
        waiter.answer(http_answer("200 OK", "{\"acquired\":false,\"resource\":\"" + waiter.resource +
                                                "\",\"retry_after_ms\":9,\"position\":1,\"place_kept_ms\":5000}"));
    }

    void hand_over(const std::string& resource) {
        line& line = lines_[resource];
        if (line.token != 0) return;
        while (!line.waiters.empty() && line.waiters.front()->is_answered)
            line.waiters.pop_front();
        if (line.waiters.empty() || (fault_ == fault::forgets_waiters && grants >= 50)) return;
        const waiter_handle next = line.waiters.front();
        line.waiters.pop_front();
        ++grants;
        ++held;
        if (fault_ != fault::repeats_tokens || last_token_ == 0) ++last_token_;
        line.token = last_token_;
        next->is_answered = true;
        const auto waited = std::chrono::steady_clock::now() - next->arrived;
        next->answer(http_answer(
            "200 OK", "{\"acquired\":true,\"lock\":" + lock_json(resource, next->quoted_owner, next->ttl_seconds) +
                          ",\"waited_ms\":" +
                          std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(waited).count()) + "}"));
        next->time.expires_after(std::chrono::seconds(next->ttl_seconds));
        next->time.async_wait([this, next, token = line.token](error_code cancelled) {
            if (!cancelled && lines_[next->resource].token == token) end_lease(next->resource);
        });
    }

    std::string lock_json(const std::string& resource, const std::string& quoted_owner, std::int64_t ttl_seconds) {
        const auto now = std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
        return "{\"resource\":\"" + resource + "\",\"owner\":" + quoted_owner + ",\"acquired_at\":\"" +
               domain::to_rfc3339(now) + "\",\"expires_at\":\"" +
               domain::to_rfc3339(now + std::chrono::seconds(ttl_seconds)) +
               "\",\"expires_in_ms\":" + std::to_string(ttl_seconds * 1'000) +
               ",\"fencing_token\":" + std::to_string(lines_[resource].token) + "}";
    }

    void end_lease(const std::string& resource) {
        --held;
        lines_[resource].token = 0;
        hand_over(resource);
    }

    void release(const std::string& request, const reply& reply) {
        const std::string resource = resource_of(request);
        if (std::to_string(lines_[resource].token) != member_of(request, "fencing_token"))
            return reply(http_answer("403 Forbidden", R"({"type":"/problems/forbidden"})"));
        end_lease(resource);
        reply("HTTP/1.1 204 No Content\r\n\r\n");
    }

    void renew(const std::string& request, const reply& reply) {
        const std::string resource = resource_of(request).substr(0, resource_of(request).find('/'));
        reply(http_answer("200 OK", lock_json(resource, member_of(request, "owner"), 900)));
    }

    const fault fault_;
    std::int64_t last_token_ = 0;
    std::map<std::string, line> lines_;
};

/// A plan of waiters for a server with lines, which counts as two.
cli::load_plan waiting_plan(cli::wait_kind kind, const scripted_server& server) {
    cli::load_plan plan = short_plan(cli::load_kind::wait, server);
    plan.servers.push_back(server.url());
    plan.waiting = kind;
    plan.resources = 1;
    plan.connections = 6;
    return plan;
}

cli::load_report run_lines(lines::fault fault, cli::wait_kind kind = cli::wait_kind::hand_over) {
    lines lines(fault);
    const scripted_server server(lines.script(), 0);
    cli::load_plan plan = waiting_plan(kind, server);
    plan.answer_limit = 1s;
    const auto report = cli::run_load_test(plan);
    BOOST_REQUIRE(report);
    return *report;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(load_generator)

BOOST_AUTO_TEST_CASE(answers_of_every_framing_are_read_whole) {
    const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";
    const std::string until_the_end = "HTTP/1.1 503 Busy\r\nConnection: close\r\n\r\nabcde";
    for (const auto& [said, status, stays_open] :
         {std::tuple{http_answer("200 OK", "abcde"), 200u, true}, std::tuple{chunked, 200u, true},
          std::tuple{until_the_end, 503u, false},
          std::tuple{http_answer("404 Not Found", "abcde", "Connection: close\r\n"), 404u, false}}) {
        const scripted_server server([said = said](const std::string&) { return said; });

        const seen seen = ask(server);

        BOOST_TEST(seen.status == status);
        BOOST_TEST(seen.body == "abcde");
        BOOST_TEST(seen.is_open_after == stays_open);
    }
}

BOOST_AUTO_TEST_CASE(a_connection_is_used_again) {
    const scripted_server server([](const std::string&) { return http_answer("200 OK", "x"); });
    asio::io_context io(1);
    client::http_connection connection(io.get_executor(), server.endpoint(), "test");
    run(io, open_and_exchange(connection));

    const seen second = run(io, exchange_once(connection));

    BOOST_TEST(second.status == 200u);
    BOOST_TEST(server.connections() == 1);
    BOOST_TEST(!connection.was_closed_by_server());
}

BOOST_AUTO_TEST_CASE(broken_answers_are_errors_and_close) {
    const std::vector<std::optional<std::string>> broken{
        std::nullopt,                                                            // hung up
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nabc",  // cut off
        "no HTTP at all\r\n\r\n",
        http_answer("200 OK", std::string(1'100'000, 'x')),  // above the limit
        http_answer("200 OK", "x") + "unasked",
    };
    for (const auto& said : broken) {
        const scripted_server server([said](const std::string&) { return said; });

        const seen seen = ask(server);

        BOOST_TEST(seen.fault.failed());
        BOOST_TEST(!seen.is_open_after);
    }
}

BOOST_AUTO_TEST_CASE(a_silent_server_is_given_up_as_timed_out) {
    const scripted_server server([](const std::string&) { return std::string(); });
    asio::io_context io(1);
    client::http_connection connection(io.get_executor(), server.endpoint(), "test");
    asio::steady_timer timer(io, 100ms);
    timer.async_wait([&](error_code) { connection.close_if_stuck(std::chrono::steady_clock::now() - 1h); });
    asio::steady_timer later(io, 200ms);
    later.async_wait([&](error_code) { connection.close_if_stuck(std::chrono::steady_clock::now()); });

    const auto start = std::chrono::steady_clock::now();
    const seen seen = run(io, open_and_exchange(connection));

    BOOST_TEST(seen.fault == asio::error::timed_out);
    BOOST_TEST((std::chrono::steady_clock::now() - start >= 200ms));  // the first call found it young enough
}

BOOST_AUTO_TEST_CASE(pairs_acquire_and_release_under_their_token) {
    const scripted_server server(&grant_everything);

    const auto report = cli::run_load_test(short_plan(cli::load_kind::pairs, server));

    BOOST_REQUIRE(report);
    BOOST_TEST(report->errors.empty());
    BOOST_TEST(report->refused == 0u);
    BOOST_TEST(report->latencies.at("pair").count() > 100u);
    BOOST_TEST(report->latencies.at("release").count() >= report->latencies.at("pair").count());
    BOOST_TEST(server.connections() <= 5);  // four and the one that asked whether the server is there
}

BOOST_AUTO_TEST_CASE(looks_expect_absence_and_health_expects_ok) {
    const scripted_server server(&grant_everything);

    const auto look = cli::run_load_test(short_plan(cli::load_kind::look, server));
    const auto health = cli::run_load_test(short_plan(cli::load_kind::health, server));

    BOOST_REQUIRE((look && health));
    BOOST_TEST((look->errors.empty() && health->errors.empty()));
    BOOST_TEST((look->latencies.at("look").count() > 100u && health->latencies.at("health").count() > 100u));
}

BOOST_AUTO_TEST_CASE(problems_are_counted_by_name_and_end_nothing) {
    const scripted_server server([](const std::string& request) {
        if (request.starts_with("GET /healthz")) return http_answer("200 OK", "{}");
        return http_answer("503 Service Unavailable", R"({"type":"/problems/overloaded","status":503})");
    });
    const cli::load_plan plan = short_plan(cli::load_kind::pairs, server);

    const auto report = cli::run_load_test(plan);

    BOOST_REQUIRE(report);
    BOOST_TEST(report->errors.size() == 1u);
    BOOST_TEST(report->errors.at("503 overloaded") > 10u);
    BOOST_TEST(report->latencies.empty());
    BOOST_TEST(boost::json::parse(cli::to_json(plan, *report)).at("pairs_per_second").as_double() == 0);
}

BOOST_AUTO_TEST_CASE(answers_for_another_resource_or_owner_are_errors) {
    const scripted_server server([](const std::string& request) -> std::optional<std::string> {
        if (!request.starts_with("POST")) return grant_everything(request);
        if (request.size() % 2 == 0)
            return http_answer("200 OK", R"({"acquired":true,"lock":{"resource":"other","fencing_token":7}})");
        return http_answer("200 OK", "{\"acquired\":true,\"lock\":{\"resource\":\"" + resource_of(request) +
                                         "\",\"owner\":\"stranger\",\"fencing_token\":7}}");
    });

    const auto report = cli::run_load_test(short_plan(cli::load_kind::pairs, server));

    BOOST_REQUIRE(report);
    BOOST_TEST(report->latencies.empty());
    for (const auto& [label, count] : report->errors)
        BOOST_TEST((label == "acquire: the answer is for another resource" ||
                    label == "acquire: the answer is not a lock of ours"),
                   label);
    BOOST_TEST(!report->errors.empty());
}

BOOST_AUTO_TEST_CASE(refusals_are_no_errors_and_lost_connections_are_opened_again) {
    const scripted_server refusing([](const std::string& request) -> std::optional<std::string> {
        if (!request.starts_with("POST")) return grant_everything(request);
        return http_answer("200 OK", "{\"acquired\":false,\"resource\":\"" + resource_of(request) + "\"}",
                           "Connection: close\r\n");
    });
    const scripted_server hanging_up([](const std::string& request) -> std::optional<std::string> {
        if (!request.starts_with("POST")) return grant_everything(request);
        return std::nullopt;
    });

    const auto refused = cli::run_load_test(short_plan(cli::load_kind::pairs, refusing));
    const auto lost = cli::run_load_test(short_plan(cli::load_kind::pairs, hanging_up));

    BOOST_REQUIRE((refused && lost));
    BOOST_TEST((refused->errors.empty() && refused->refused > 10u));
    BOOST_TEST(refusing.connections() > 10);
    BOOST_TEST(hanging_up.connections() > 10);
    BOOST_REQUIRE_EQUAL(lost->errors.size(), 1u);
    BOOST_TEST(lost->errors.begin()->first.starts_with("transport: "));
}

BOOST_AUTO_TEST_CASE(a_mixed_round_does_everything_that_can_be_done_with_a_lock) {
    test::http_node node;
    const cli::load_plan plan = short_plan(cli::load_kind::mixed, url_of(node.listen()));

    const auto report = cli::run_load_test(plan);

    BOOST_REQUIRE(report);
    BOOST_TEST(report->errors.empty());
    const std::uint64_t rounds = count_of(*report, "round");
    BOOST_TEST(rounds > 50u);
    for (const char* kind : {"acquire", "renew", "look", "refuse", "release"})
        BOOST_TEST(count_of(*report, kind) >= rounds, kind);
    BOOST_TEST(report->refused >= report->rounds);
    BOOST_TEST(report->answers >= 5 * report->rounds);
    const boost::json::object text = parsed(plan, *report);
    BOOST_TEST(text.at("mode").as_string() == "mixed");
    BOOST_TEST(text.at("answers_per_second").as_double() >= 5 * text.at("rounds_per_second").as_double());
    BOOST_TEST(text.at("latencies_ms").at("renew").at("p999").as_double() > 0);
    BOOST_TEST(text.at("rate").is_null());
    BOOST_TEST(!text.contains("started"));
}

BOOST_AUTO_TEST_CASE(a_mixed_round_notices_a_lock_that_is_granted_twice) {
    std::string lock;
    const scripted_server server([&lock](const std::string& request) -> std::optional<std::string> {
        if (request.starts_with("DELETE") || request.starts_with("GET /healthz")) return grant_everything(request);
        if (request.starts_with("POST") && request.find("/renew ") == std::string::npos)
            lock = "{\"acquired\":true,\"lock\":{\"resource\":\"" + resource_of(request) +
                   "\",\"owner\":" + member_of(request, "owner") + ",\"fencing_token\":7}}";
        return http_answer("200 OK", lock);  // what was granted last is what one sees and renews
    });
    cli::load_plan plan = short_plan(cli::load_kind::mixed, server);
    plan.connections = 1;

    const auto report = cli::run_load_test(plan);

    BOOST_REQUIRE(report);
    BOOST_REQUIRE_EQUAL(report->errors.size(), 1u);
    BOOST_TEST(report->errors.begin()->first == "refuse: our lock was not refused to another");
    BOOST_TEST(
        (count_of(*report, "acquire") > 0u && count_of(*report, "renew") > 0u && count_of(*report, "look") > 0u));
    BOOST_TEST((count_of(*report, "round") == 0u && report->rounds == 0u));
}

BOOST_AUTO_TEST_CASE(all_connections_fight_for_the_one_hot_resource) {
    test::http_node node;
    cli::load_plan plan = short_plan(cli::load_kind::hot, url_of(node.listen()));
    plan.hot_resource = "h\xc3\xb6t/\"1 2";

    const auto report = cli::run_load_test(plan);

    BOOST_REQUIRE(report);
    BOOST_TEST(report->errors.empty());
    BOOST_TEST((report->rounds > 50u && report->refused > 0u));
    BOOST_TEST(report->answers >= 2 * report->rounds + report->refused - plan.connections);
    BOOST_TEST(count_of(*report, "pair") == count_of(*report, "acquire"));
    const boost::json::object text = parsed(plan, *report);
    BOOST_TEST(text.at("answers_per_second").as_double() > text.at("pairs_per_second").as_double());
    const auto left = node.request("GET", "/locks/h%C3%B6t%2F%221%202");
    BOOST_TEST(left.status == 404u);  // whoever had it last gave it back
}

BOOST_AUTO_TEST_CASE(an_open_loop_counts_latency_from_when_a_request_was_due) {
    // One connection of which each request takes 50 ms, and 100 a second are due: the last begins nearly a second late.
    // Counted from when it was really sent, none would have taken much more than 50 ms.
    std::atomic<int> looks = 0;
    const scripted_server slow([&looks](const std::string& request) {
        if (request.starts_with("GET /locks/")) {
            ++looks;
            std::this_thread::sleep_for(50ms);  // the slowness that is measured
        }
        return grant_everything(request);
    });
    const cli::load_plan plan = open_loop(100, 1, slow);

    const auto report = cli::run_load_test(plan);

    BOOST_REQUIRE(report);
    BOOST_TEST(report->errors.empty());
    BOOST_TEST(report->started == static_cast<std::uint64_t>(looks));
    BOOST_TEST(report->started <= 21u);
    BOOST_TEST(report->started + report->never_started == 100u);
    const cli::latency_histogram& latency = report->latencies.at("look");
    BOOST_TEST(latency.count() == report->started);
    // The one after n others was due at 10 n ms and answered at 50 (n + 1) ms at the earliest.
    const auto last = static_cast<std::int64_t>(report->started) - 1;
    BOOST_TEST((latency.highest() >= (40 * last + 50) * 1ms));
    BOOST_TEST((latency.percentile(0.5) >= (40 * (last / 2) + 50) * 1ms));
    const boost::json::object text = parsed(plan, *report);
    BOOST_TEST(text.at("rate").to_number<int>() == 100);
    BOOST_TEST(text.at("started").to_number<std::uint64_t>() == report->started);
    BOOST_TEST(text.at("never_started").to_number<std::uint64_t>() == report->never_started);
}

BOOST_AUTO_TEST_CASE(an_open_loop_asks_no_faster_than_its_rate) {
    std::atomic<int> looks = 0;
    const scripted_server fast([&looks](const std::string& request) {
        if (request.starts_with("GET /locks/")) ++looks;
        return grant_everything(request);
    });

    const auto report = cli::run_load_test(open_loop(200, 8, fast));

    BOOST_REQUIRE(report);
    BOOST_TEST(report->errors.empty());
    BOOST_TEST((report->started > 0u && report->started + report->never_started == 200u));
    BOOST_TEST(static_cast<std::uint64_t>(looks) == report->started);
    BOOST_TEST(count_of(*report, "look") == report->started);
}

BOOST_AUTO_TEST_CASE(pairs_and_mixed_rounds_keep_to_a_rate_too) {
    test::http_node node;
    const client::server_url url = url_of(node.listen());
    for (const auto& [kind, round] :
         {std::pair{cli::load_kind::pairs, "pair"}, std::pair{cli::load_kind::mixed, "round"}}) {
        cli::load_plan plan = short_plan(kind, url);
        plan.rounds_per_second = 50;

        const auto report = cli::run_load_test(plan);

        BOOST_REQUIRE(report);
        BOOST_TEST(report->errors.empty());
        BOOST_TEST((report->started > 0u && report->started + report->never_started == 50u));
        BOOST_TEST(count_of(*report, round) == report->started);
    }
}

BOOST_AUTO_TEST_CASE(a_signal_ends_an_open_loop_that_waits_for_its_next_start) {
    std::atomic<int> looks = 0;
    const scripted_server server([&looks](const std::string& request) {
        // The second comes a second after the first; the other three connections wait for still later ones.
        if (request.starts_with("GET /locks/") && ++looks == 1) ::kill(::getpid(), SIGTERM);
        return grant_everything(request);
    });
    cli::load_plan plan = open_loop(1, 4, server);
    plan.length = 60s;

    const auto began = std::chrono::steady_clock::now();
    const auto report = cli::run_load_test(plan);

    BOOST_REQUIRE(report);
    BOOST_TEST((std::chrono::steady_clock::now() - began < 30s));
    BOOST_TEST(report->measured.count() < 30);
    BOOST_TEST((report->started >= 1u && report->started < 30u));
}

BOOST_AUTO_TEST_CASE(owners_in_line_hand_the_lock_on_and_each_handover_is_measured) {
    lines lines(lines::fault::none);
    const scripted_server server(lines.script(), 0);
    const cli::load_plan plan = waiting_plan(cli::wait_kind::hand_over, server);

    const auto report = cli::run_load_test(plan);

    BOOST_REQUIRE(report);
    BOOST_TEST(report->errors.empty());
    BOOST_TEST(report->waiting.handovers > 50u);
    // Nearly all had asked before the release; on a slow machine one may come late.
    BOOST_TEST(report->waiting.handovers <= report->waiting.grants);
    BOOST_TEST(report->waiting.handovers * 20 >= report->waiting.grants * 19);
    BOOST_TEST(report->waiting.standing_most >= 5u);  // and one that holds it
    BOOST_TEST((report->waiting.early == 0u && report->waiting.violations == 0u && report->waiting.time_ups == 0u));
    BOOST_TEST(count_of(*report, "handover") >= report->waiting.handovers - 1);
    BOOST_TEST(count_of(*report, "handover_across") > 0u);
    BOOST_TEST(count_of(*report, "handover_across") <= count_of(*report, "handover"));
    BOOST_TEST(count_of(*report, "lateness") == 0u);
    BOOST_TEST(lines.held <= 1);  // by one that was granted it while it left
    const boost::json::object text = parsed(plan, *report);
    BOOST_TEST(text.at("mode").as_string() == "wait");
    BOOST_TEST(text.at("waiting").as_string() == "hand_over");
    BOOST_TEST(text.at("handovers_per_second").as_double() == static_cast<double>(report->waiting.handovers));
    BOOST_TEST((text.at("early").to_number<int>() == 0 && text.at("violations").to_number<int>() == 0));
    BOOST_TEST(cli::to_table(plan, *report).find("\nhandovers_per_second ") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_lock_is_kept_for_as_long_as_the_plan_says) {
    lines lines(lines::fault::none);
    const scripted_server server(lines.script(), 0);
    cli::load_plan plan = waiting_plan(cli::wait_kind::hand_over, server);
    plan.hold = 50ms;

    const auto report = cli::run_load_test(plan);

    BOOST_REQUIRE(report);
    BOOST_TEST(report->errors.empty());
    BOOST_TEST((report->waiting.grants > 2u && report->waiting.grants <= 20u));
}

BOOST_AUTO_TEST_CASE(leases_that_nobody_releases_show_how_late_the_next_grant_is) {
    lines lines(lines::fault::none);
    const scripted_server server(lines.script(), 0);
    cli::load_plan plan = waiting_plan(cli::wait_kind::abandon, server);
    plan.ttl_seconds = 1;
    plan.length = 3s;

    const auto report = cli::run_load_test(plan);

    BOOST_REQUIRE(report);
    BOOST_TEST(report->errors.empty());
    BOOST_TEST((report->waiting.expiries >= 1u && report->waiting.handovers == 0u));
    BOOST_TEST(report->waiting.early == 0u);
    BOOST_TEST(count_of(*report, "release") == 0u);
    BOOST_TEST(count_of(*report, "lateness") == count_of(*report, "stamped_lateness"));
    BOOST_REQUIRE(count_of(*report, "lateness") >= 2u);  // the last of them after the measured time
    BOOST_TEST((report->latencies.at("lateness").percentile(0.5) < 500ms));
}

BOOST_AUTO_TEST_CASE(parked_owners_wait_for_what_stays_held) {
    lines lines(lines::fault::none);
    const scripted_server server(lines.script(), 0);
    cli::load_plan plan = waiting_plan(cli::wait_kind::park, server);
    plan.resources = 3;
    plan.ttl_seconds = 3;  // renewed after one second
    plan.wait_seconds = 1;
    plan.length = 2s;

    const auto report = cli::run_load_test(plan);

    BOOST_REQUIRE(report);
    BOOST_TEST(report->errors.empty());
    BOOST_TEST((report->waiting.time_ups >= 6u && report->waiting.grants == 0u));
    BOOST_TEST(report->waiting.standing_most == 6u);
    BOOST_TEST(report->waiting.standing_at_end >= 5u);  // one may be about to ask again
    BOOST_TEST(count_of(*report, "renew") >= 3u);
    BOOST_TEST(lines.grants >= 3);
    BOOST_TEST(lines.held == lines.grants - 3);  // the keepers gave back what they held
}

BOOST_AUTO_TEST_CASE(grants_that_must_not_be_are_violations_and_the_command_fails) {
    for (const auto& [fault, kind, label] :
         {std::tuple{lines::fault::repeats_tokens, cli::wait_kind::hand_over,
                     "violation: a fencing token was given twice"},
          std::tuple{lines::fault::grants_what_is_held, cli::wait_kind::abandon, "violation: two held it at a time"},
          std::tuple{lines::fault::grants_what_is_held, cli::wait_kind::park, "violation: two held it at a time"}}) {
        const cli::load_report report = run_lines(fault, kind);

        BOOST_REQUIRE_MESSAGE(report.errors.contains(label), label);
        BOOST_TEST(report.errors.at(label) <= report.waiting.violations);
        BOOST_TEST((report.waiting.early > 0u) == (fault == lines::fault::grants_what_is_held));
    }
}

BOOST_AUTO_TEST_CASE(a_waiter_that_is_refused_too_soon_or_forgotten_is_an_error) {
    const cli::load_report refused = run_lines(lines::fault::refuses_waiters);
    const cli::load_report forgotten = run_lines(lines::fault::forgets_waiters);

    BOOST_TEST(refused.errors.contains("acquire: refused before the time was up"));
    BOOST_TEST(refused.waiting.time_ups == 0u);
    BOOST_REQUIRE_EQUAL(forgotten.errors.size(), 1u);
    BOOST_TEST(forgotten.errors.at("handover: nobody was granted what is free") == 1u);
}

BOOST_AUTO_TEST_CASE(a_violation_is_the_exit_code) {
    for (const auto& [fault, expected] :
         {std::pair{lines::fault::none, 0}, std::pair{lines::fault::repeats_tokens, 1}}) {
        lines lines(fault);
        const scripted_server server(lines.script(), 0);
        std::string url = "http://" + server.url().authority;
        std::vector<std::string> words{"bench", "--url",     url, "--mode",           "wait", "--connections",
                                       "4",     "--seconds", "1", "--warmup-seconds", "0",    "--json"};
        std::vector<char*> arguments;
        for (std::string& word : words)
            arguments.push_back(word.data());
        std::ostringstream printed;
        std::streambuf* const before = std::cout.rdbuf(printed.rdbuf());

        const int code = cli::bench(static_cast<int>(arguments.size()), arguments.data());

        std::cout.rdbuf(before);
        BOOST_TEST(code == expected);
        BOOST_TEST(boost::json::parse(printed.str()).at("resources").to_number<int>() == 1);
    }
}

BOOST_AUTO_TEST_CASE(idle_connections_stay_open_and_those_that_do_not_are_told) {
    const scripted_server keeping(&grant_everything);
    const scripted_server closing(
        [](const std::string&) { return http_answer("200 OK", "", "Connection: close\r\n"); });
    cli::load_plan plan = short_plan(cli::load_kind::health, keeping);
    plan.connections = 0;
    plan.idle_connections = 50;

    const auto kept = cli::run_load_test(plan);
    plan.servers = {closing.url()};
    const auto closed = cli::run_load_test(plan);

    BOOST_REQUIRE((kept && closed));
    BOOST_TEST((kept->idle_connections_opened == 50u && kept->idle_connections_kept == 50u));
    BOOST_TEST((closed->idle_connections_opened == 50u && closed->idle_connections_kept == 0u));
}

BOOST_AUTO_TEST_CASE(nothing_to_reach_is_no_report) {
    std::optional<scripted_server> gone(std::in_place, &grant_everything);
    const cli::load_plan plan = short_plan(cli::load_kind::pairs, *gone);
    gone.reset();

    BOOST_TEST(!cli::run_load_test(plan).has_value());
}

BOOST_AUTO_TEST_CASE(server_urls_are_plain_http_without_a_path) {
    const auto named = client::server_url::parse("http://locks.example:8080/");
    BOOST_REQUIRE(named);
    BOOST_TEST((named->host == "locks.example" && named->port == 8080 && named->authority == "locks.example:8080"));
    const auto six = client::server_url::parse("http://[::1]");
    BOOST_REQUIRE(six);
    BOOST_TEST((six->host == "::1" && six->port == 80 && six->authority == "[::1]"));
    for (const char* url : {"", "127.0.0.1:8080", "https://h", "http://", "http://u:p@h", "http://h/path", "http://h?q",
                            "http://h#f", "http://h:0", "http://h:70000", "http://h h"})
        BOOST_TEST(!client::server_url::parse(url), url);
}

BOOST_AUTO_TEST_SUITE_END()
