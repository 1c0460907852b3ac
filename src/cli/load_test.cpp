#include "holdfast/cli/load_test.hpp"

#include "holdfast/cli/load_worker.hpp"
#include "holdfast/cli/start_schedule.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <unistd.h>

#include <algorithm>
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
using clock = std::chrono::steady_clock;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr auto pause_after_error = 10ms;
constexpr auto pause_after_failed_connect = 100ms;
constexpr auto watch_interval = 100ms;
constexpr auto silence_to_check_after = 1s;
constexpr std::size_t opened_at_once = 32;

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

    asio::awaitable<void> work(load_worker& worker);
    asio::awaitable<void> work_by_schedule(load_worker& worker);
    asio::awaitable<void> rest(load_worker& worker, clock::duration length);

    const load_plan& plan_;
    asio::io_context io_{1};
    asio::signal_set signals_;
    asio::steady_timer end_;    // fires when the load is to stop
    asio::steady_timer watch_;  // beats for close_if_stuck
    std::vector<found_server> servers_;
    std::deque<load_worker> workers_;
    std::deque<client::http_connection> idle_;
    std::size_t running_ = 0;  // coroutines beside watch() and obey_signals()
    bool is_stopping_ = false;
    bool is_any_reachable_ = false;
    std::optional<start_schedule> schedule_;  // of an open loop
    load_recorder recorder_;
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
        if (!connection.was_closed_by_server()) ++recorder_.report().idle_connections_kept;
    if (!is_any_reachable_) return std::nullopt;
    load_report& report = recorder_.report();
    if (schedule_) {
        const auto due = static_cast<std::uint64_t>(schedule_->due_within(recorder_.from(), recorder_.until()));
        report.never_started = due - std::min(due, report.started);
    }
    return std::move(report);
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
        for (load_worker& worker : workers_)
            worker.close_if_stuck(limit);
        for (client::http_connection& connection : idle_)
            connection.close_if_stuck(limit);
    }
}

asio::awaitable<void> load_test::obey_signals() {
    auto [fault, signal] = co_await signals_.async_wait(as_result);
    if (fault) co_return;
    is_stopping_ = true;
    recorder_.cut_off(clock::now());
    end_.cancel();
    for (load_worker& worker : workers_)
        worker.pause.cancel();
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
        recorder_.failed("resolve: " + fault.message());
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
        const found_server& server = servers_[n % servers_.size()];
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
            recorder_.failed("connect: " + fault.message());
            continue;
        }
        const auto answered = co_await idle_[n].exchange("GET", "/healthz", {});
        if (!answered)
            recorder_.failed("transport: " + answered.error().message());
        else if (answered->status != 200)
            recorder_.failed(std::to_string(answered->status));
        else
            ++recorder_.report().idle_connections_opened;
    }
}

asio::awaitable<void> load_test::apply_load() {
    std::random_device entropy;
    const std::string run = std::to_string(::getpid()) + "-" + std::to_string(entropy());
    const clock::time_point begin = clock::now();
    recorder_.measure(begin + plan_.warmup, begin + plan_.warmup + plan_.length);
    if (plan_.rounds_per_second > 0) schedule_.emplace(begin, plan_.rounds_per_second);
    for (std::size_t n = 0; n < plan_.connections; ++n) {
        std::string owner = "bench-" + run + "-" + std::to_string(n);
        load_worker& added = workers_.emplace_back(io_.get_executor(), plan_, recorder_, servers_[n % servers_.size()],
                                                   std::move(owner), entropy());
        spawn(schedule_ ? work_by_schedule(added) : work(added));
    }
    end_.expires_at(recorder_.until());
    co_await end_.async_wait(as_result);
    is_stopping_ = true;
    recorder_.report().measured = std::max(recorder_.until() - recorder_.from(), clock::duration::zero());
}

asio::awaitable<void> load_test::work(load_worker& worker) {
    while (!is_stopping_) {
        const bool is_connected = co_await worker.connect();
        bool is_well = is_connected;
        if (is_connected) is_well = co_await worker.do_round(clock::now());
        if (!is_well) co_await rest(worker, is_connected ? pause_after_error : pause_after_failed_connect);
    }
    worker.close();
}

/// A free connection takes the next start and waits for its moment. So one that is due finds a connection waiting for
/// it, or all are busy and the first to become free takes it late.
asio::awaitable<void> load_test::work_by_schedule(load_worker& worker) {
    while (!is_stopping_) {
        const bool is_connected = co_await worker.connect();
        if (!is_connected) {
            co_await rest(worker, pause_after_failed_connect);
            continue;
        }
        if (is_stopping_) break;
        const clock::time_point due = schedule_->take();
        const clock::duration ahead = due - clock::now();
        if (due < recorder_.until() && ahead > clock::duration::zero()) co_await rest(worker, ahead);
        if (due >= recorder_.until()) break;  // perhaps only since a signal came
        if (ahead > silence_to_check_after) worker.notice_close();
        if (recorder_.is_measured(due)) ++recorder_.report().started;
        const bool is_well = co_await worker.do_round(due);
        if (!is_well) co_await rest(worker, pause_after_error);
    }
    worker.close();
}

asio::awaitable<void> load_test::rest(load_worker& worker, clock::duration length) {
    worker.pause.expires_after(length);
    co_await worker.pause.async_wait(as_result);
}

}  // namespace

std::optional<load_report> run_load_test(const load_plan& plan) {
    load_test test(plan);
    return test.run();
}

}  // namespace holdfast::cli
