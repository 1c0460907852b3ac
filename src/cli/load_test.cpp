#include "holdfast/cli/load_test.hpp"

#include "holdfast/client/http_connection.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <deque>
#include <exception>
#include <random>
#include <utility>

namespace holdfast::cli {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio::ip::tcp;
using boost::system::error_code;
using client::answer;
using clock = std::chrono::steady_clock;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr auto pause_after_error = 10ms;
constexpr auto pause_after_failed_connect = 100ms;
constexpr auto watch_interval = 100ms;
constexpr std::size_t opened_at_once = 32;
constexpr std::size_t error_labels_max = 64;

/// Where a server was found to answer, or else where it should be.
struct server {
    std::string authority;
    tcp::endpoint endpoint;
};

/// The name in a problem's `type`, or nothing: enough to tell errors apart without parsing JSON under load.
std::string_view problem_name(std::string_view body) {
    constexpr std::string_view mark = "/problems/";
    const std::size_t at = body.find(mark);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = body.substr(at + mark.size());
    const std::string_view name = rest.substr(0, rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"));
    return name.substr(0, 40);
}

std::string label_of(const answer& answer) {
    std::string label = std::to_string(answer.status);
    if (const std::string_view name = problem_name(answer.body); !name.empty()) label.append(" ").append(name);
    return label;
}

bool holds(std::string_view body, std::string_view member) {
    return body.find(member) != std::string_view::npos;
}

std::optional<std::int64_t> fencing_token_in(std::string_view body) {
    constexpr std::string_view mark = "\"fencing_token\":";
    const std::size_t at = body.find(mark);
    if (at == std::string_view::npos) return std::nullopt;
    std::int64_t token = 0;
    const char* const first = body.data() + at + mark.size();
    const auto [end, fault] = std::from_chars(first, body.data() + body.size(), token);
    if (fault != std::errc()) return std::nullopt;
    return token;
}

/// One connection's part of the load. Lives in the load test until the end; its strings are reused.
struct worker {
    worker(asio::any_io_executor executor, const server& server, std::string owner, std::uint64_t seed)
        : connection(executor, server.endpoint, server.authority),
          pause(executor),
          owner(std::move(owner)),
          random(static_cast<std::minstd_rand::result_type>(seed)) {}

    client::http_connection connection;
    asio::steady_timer pause;
    std::string owner;
    std::minstd_rand random;
    std::string acquire_body;
    std::string resource;
    std::string target;
    std::string body;
};

class load_test {
public:
    explicit load_test(const load_plan& plan) : plan_(plan), signals_(io_, SIGINT, SIGTERM), end_(io_), watch_(io_) {}

    std::optional<load_report> run();

private:
    void spawn(asio::awaitable<void> task);
    asio::awaitable<void> conduct();
    asio::awaitable<void> watch();
    asio::awaitable<void> obey_signals();

    asio::awaitable<bool> find_servers();
    asio::awaitable<bool> find_server(const client::server_url& url);
    asio::awaitable<void> open_idle_connections();
    asio::awaitable<void> open_every_nth(std::size_t first);
    asio::awaitable<void> apply_load();

    asio::awaitable<void> work(worker& worker);
    asio::awaitable<bool> send_one(worker& worker);
    asio::awaitable<bool> send_pair(worker& worker);
    asio::awaitable<bool> send_release(worker& worker, std::int64_t token);
    asio::awaitable<bool> send_look(worker& worker);
    asio::awaitable<bool> send_health(worker& worker);

    void choose_resource(worker& worker, std::string_view prefix);
    void record(std::string_view kind, clock::time_point began);
    bool is_measuring(clock::time_point moment) const { return moment >= measure_from_ && moment < measure_until_; }
    bool count_error(std::string label);
    bool count_transport_error(error_code fault) { return count_error("transport: " + fault.message()); }

    const load_plan& plan_;
    asio::io_context io_{1};
    asio::signal_set signals_;
    asio::steady_timer end_;    // fires when the load is to stop
    asio::steady_timer watch_;  // beats for close_if_stuck
    std::vector<server> servers_;
    std::deque<worker> workers_;
    std::deque<client::http_connection> idle_;
    std::size_t running_ = 0;  // coroutines beside watch() and obey_signals()
    bool is_stopping_ = false;
    bool is_any_reachable_ = false;
    clock::time_point measure_from_ = clock::time_point::max();
    clock::time_point measure_until_ = clock::time_point::max();
    load_report report_;
};

std::optional<load_report> load_test::run() {
    asio::co_spawn(io_, watch(), [](std::exception_ptr fault) {
        if (fault) std::rethrow_exception(fault);
    });
    asio::co_spawn(io_, obey_signals(), [](std::exception_ptr fault) {
        if (fault) std::rethrow_exception(fault);
    });
    spawn(conduct());
    io_.run();
    for (client::http_connection& connection : idle_)
        if (!connection.was_closed_by_server()) ++report_.idle_connections_kept;
    if (!is_any_reachable_) return std::nullopt;
    return std::move(report_);
}

/// The last one to end lets the watch and the signals end too, and so the run.
void load_test::spawn(asio::awaitable<void> task) {
    ++running_;
    asio::co_spawn(io_, std::move(task), [this](std::exception_ptr fault) {
        if (fault) std::rethrow_exception(fault);
        if (--running_ > 0) return;
        watch_.cancel();
        signals_.cancel();
    });
}

asio::awaitable<void> load_test::conduct() {
    is_any_reachable_ = co_await find_servers();
    if (!is_any_reachable_) co_return;
    co_await open_idle_connections();
    if (!is_stopping_) co_await apply_load();
}

asio::awaitable<void> load_test::watch() {
    while (running_ > 0) {
        watch_.expires_after(watch_interval);
        co_await watch_.async_wait(as_result);
        const clock::time_point limit = clock::now() - plan_.answer_limit;
        for (worker& worker : workers_)
            worker.connection.close_if_stuck(limit);
        for (client::http_connection& connection : idle_)
            connection.close_if_stuck(limit);
    }
}

asio::awaitable<void> load_test::obey_signals() {
    auto [fault, signal] = co_await signals_.async_wait(as_result);
    if (fault) co_return;
    is_stopping_ = true;
    measure_until_ = std::min(measure_until_, clock::now());
    end_.cancel();
    signals_.clear();  // a second one ends the process at once
}

asio::awaitable<bool> load_test::find_servers() {
    bool is_any_found = false;
    for (const client::server_url& url : plan_.servers)
        if (co_await find_server(url)) is_any_found = true;
    co_return is_any_found;
}

/// Takes the first of the server's addresses that answers. A server that does not answer keeps its place, so that its
/// share of the load shows as errors, unless its name has no address at all.
asio::awaitable<bool> load_test::find_server(const client::server_url& url) {
    tcp::resolver resolver(io_);
    const std::string port = std::to_string(url.port);
    auto [fault, found] = co_await resolver.async_resolve(url.host, port, as_result);
    if (fault || found.empty()) {
        count_error("resolve: " + fault.message());
        co_return false;
    }
    for (const auto& entry : found) {
        client::http_connection& connection =
            idle_.emplace_back(io_.get_executor(), entry.endpoint(), url.authority);  // there the watch sees it
        const error_code refused = co_await connection.open();
        bool is_answering = false;
        if (!refused) is_answering = (co_await connection.exchange("GET", "/healthz", {})).has_value();
        idle_.pop_back();
        if (!is_answering) continue;
        servers_.push_back({url.authority, entry.endpoint()});
        co_return true;
    }
    servers_.push_back({url.authority, found.begin()->endpoint()});
    co_return false;
}

asio::awaitable<void> load_test::open_idle_connections() {
    for (std::size_t n = 0; n < plan_.idle_connections; ++n) {
        const server& server = servers_[n % servers_.size()];
        idle_.emplace_back(io_.get_executor(), server.endpoint, server.authority);
    }
    for (std::size_t first = 0; first < opened_at_once; ++first)
        spawn(open_every_nth(first));
    asio::steady_timer timer(io_);
    while (running_ > 1) {  // this coroutine is the one that remains
        timer.expires_after(5ms);
        co_await timer.async_wait(as_result);
    }
}

asio::awaitable<void> load_test::open_every_nth(std::size_t first) {
    for (std::size_t n = first; n < idle_.size() && !is_stopping_; n += opened_at_once) {
        if (const error_code fault = co_await idle_[n].open()) {
            count_error("connect: " + fault.message());
            continue;
        }
        const auto answered = co_await idle_[n].exchange("GET", "/healthz", {});
        if (!answered)
            count_transport_error(answered.error());
        else if (answered->status != 200)
            count_error(label_of(*answered));
        else
            ++report_.idle_connections_opened;
    }
}

asio::awaitable<void> load_test::apply_load() {
    std::random_device entropy;
    const std::string run = std::to_string(::getpid()) + "-" + std::to_string(entropy());
    measure_from_ = clock::now() + plan_.warmup;
    measure_until_ = measure_from_ + plan_.length;
    for (std::size_t n = 0; n < plan_.connections; ++n) {
        std::string owner = "bench-" + run + "-" + std::to_string(n);
        worker& added =
            workers_.emplace_back(io_.get_executor(), servers_[n % servers_.size()], std::move(owner), entropy());
        spawn(work(added));
    }
    end_.expires_at(measure_until_);
    co_await end_.async_wait(as_result);
    is_stopping_ = true;
    report_.measured = std::max(measure_until_ - measure_from_, clock::duration::zero());
}

asio::awaitable<void> load_test::work(worker& worker) {
    worker.acquire_body =
        "{\"owner\":\"" + worker.owner + "\",\"ttl_seconds\":" + std::to_string(plan_.ttl_seconds) + "}";
    while (!is_stopping_) {
        bool is_well = true;
        auto pause = pause_after_error;
        if (!worker.connection.is_open()) {
            if (const error_code fault = co_await worker.connection.open()) {
                is_well = count_error("connect: " + fault.message());
                pause = pause_after_failed_connect;
            }
        }
        if (is_well) is_well = co_await send_one(worker);
        if (is_well) continue;
        worker.pause.expires_after(pause);
        co_await worker.pause.async_wait(as_result);
    }
    worker.connection.close();
}

/// Here and below: false after an error, which was counted.
asio::awaitable<bool> load_test::send_one(worker& worker) {
    switch (plan_.kind) {
        case load_kind::pairs:
            return send_pair(worker);
        case load_kind::look:
            return send_look(worker);
        case load_kind::health:
            return send_health(worker);
    }
    return send_health(worker);
}

asio::awaitable<bool> load_test::send_pair(worker& worker) {
    choose_resource(worker, "bench:");
    const clock::time_point began = clock::now();
    const auto answered = co_await worker.connection.exchange("POST", worker.target, worker.acquire_body);
    if (!answered) co_return count_transport_error(answered.error());
    if (answered->status != 200) co_return count_error(label_of(*answered));
    if (!holds(answered->body, worker.resource)) co_return count_error("acquire: the answer is for another resource");
    if (holds(answered->body, "\"acquired\":false")) {
        record("acquire", began);
        if (is_measuring(clock::now())) ++report_.refused;
        co_return true;
    }
    const std::optional<std::int64_t> token = fencing_token_in(answered->body);
    if (!token || !holds(answered->body, "\"acquired\":true") || !holds(answered->body, worker.owner))
        co_return count_error("acquire: the answer is not a lock of ours");
    record("acquire", began);
    // The release may need a new connection when the answer closed this one.
    if (!worker.connection.is_open()) {
        if (const error_code fault = co_await worker.connection.open())
            co_return count_error("connect: " + fault.message());
    }
    if (!co_await send_release(worker, *token)) co_return false;
    record("pair", began);
    co_return true;
}

asio::awaitable<bool> load_test::send_release(worker& worker, std::int64_t token) {
    worker.body = "{\"owner\":\"" + worker.owner + "\",\"fencing_token\":" + std::to_string(token) + "}";
    const clock::time_point began = clock::now();
    const auto answered = co_await worker.connection.exchange("DELETE", worker.target, worker.body);
    if (!answered) co_return count_transport_error(answered.error());
    if (answered->status != 204) co_return count_error("release: " + label_of(*answered));
    record("release", began);
    co_return true;
}

asio::awaitable<bool> load_test::send_look(worker& worker) {
    choose_resource(worker, "bench-absent:");
    const clock::time_point began = clock::now();
    const auto answered = co_await worker.connection.exchange("GET", worker.target, {});
    if (!answered) co_return count_transport_error(answered.error());
    if (answered->status != 404 || problem_name(answered->body) != "not-found")
        co_return count_error(label_of(*answered));
    record("look", began);
    co_return true;
}

asio::awaitable<bool> load_test::send_health(worker& worker) {
    const clock::time_point began = clock::now();
    const auto answered = co_await worker.connection.exchange("GET", "/healthz", {});
    if (!answered) co_return count_transport_error(answered.error());
    if (answered->status != 200) co_return count_error(label_of(*answered));
    record("health", began);
    co_return true;
}

void load_test::choose_resource(worker& worker, std::string_view prefix) {
    std::uniform_int_distribution<std::int64_t> choice(0, plan_.resources - 1);
    worker.resource.assign(prefix).append(std::to_string(choice(worker.random)));
    worker.target.assign("/locks/").append(worker.resource);
    worker.resource.insert(0, 1, '"').push_back('"');  // as it stands in the answer
}

void load_test::record(std::string_view kind, clock::time_point began) {
    const clock::time_point now = clock::now();
    if (is_measuring(now)) report_.latencies[kind].record(now - began);
}

bool load_test::count_error(std::string label) {
    if (report_.errors.size() >= error_labels_max && !report_.errors.contains(label)) label = "other";
    ++report_.errors[std::move(label)];
    return false;
}

}  // namespace

std::string_view to_text(load_kind kind) noexcept {
    switch (kind) {
        case load_kind::pairs:
            return "pairs";
        case load_kind::look:
            return "look";
        case load_kind::health:
            return "health";
    }
    return "unknown";
}

std::optional<load_report> run_load_test(const load_plan& plan) {
    load_test test(plan);
    return test.run();
}

}  // namespace holdfast::cli
