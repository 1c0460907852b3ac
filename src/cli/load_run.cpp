#include "holdfast/cli/load_run.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <random>
#include <utility>

namespace holdfast::cli {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr auto watch_interval = 100ms;

void rethrow(std::exception_ptr fault) {
    if (fault) std::rethrow_exception(fault);
}

}  // namespace

load_run::load_run(const load_plan& plan) : plan_(plan), signals_(io_, SIGINT, SIGTERM), end_(io_), watch_(io_) {}

std::optional<load_report> load_run::run() {
    asio::co_spawn(io_, watch(), &rethrow);
    asio::co_spawn(io_, obey_signals(), &rethrow);
    spawn(conduct());
    io_.run();
    if (!is_any_reachable_) return std::nullopt;
    return std::move(recorder_.report());
}

/// The last one to end lets the watch and the signals end too, and so the run.
void load_run::spawn(asio::awaitable<void> task) {
    ++running_;
    asio::co_spawn(io_, std::move(task), [this](std::exception_ptr fault) {
        rethrow(fault);
        if (--running_ > 0) return;
        watch_.cancel();
        signals_.cancel();
    });
}

asio::awaitable<void> load_run::conduct() {
    is_any_reachable_ = co_await find_servers();
    if (is_any_reachable_) co_await apply_load();
}

asio::awaitable<void> load_run::watch() {
    while (running_ > 0) {
        watch_.expires_after(watch_interval);
        co_await watch_.async_wait(as_result);
        if (probe_) probe_->close_if_stuck(clock::now() - plan_.answer_limit);
        close_stuck(clock::now() - plan_.answer_limit);
    }
}

asio::awaitable<void> load_run::obey_signals() {
    auto [fault, signal] = co_await signals_.async_wait(as_result);
    if (fault) co_return;
    is_stopping_ = true;
    recorder_.cut_off(clock::now());
    end_.cancel();
    wake_all();
    signals_.clear();  // a second one ends the process at once
}

asio::awaitable<bool> load_run::find_servers() {
    bool is_any_found = false;
    for (const client::server_url& url : plan_.servers)
        if (co_await find_server(url)) is_any_found = true;
    co_return is_any_found;
}

/// Takes the first of the server's addresses that answers. A server that does not answer keeps its place, so that its
/// share of the load shows as errors, unless its name has no address at all.
asio::awaitable<bool> load_run::find_server(const client::server_url& url) {
    tcp::resolver resolver(io_);
    const std::string port = std::to_string(url.port);
    auto [fault, found] = co_await resolver.async_resolve(url.host, port, as_result);
    if (fault || found.empty()) {
        recorder_.failed("resolve: " + fault.message());
        co_return false;
    }
    for (const auto& entry : found) {
        client::http_connection connection(io_.get_executor(), entry.endpoint(), url.authority);
        probe_ = &connection;  // there the watch sees it
        const error_code refused = co_await connection.open();
        bool is_answering = false;
        if (!refused) is_answering = (co_await connection.exchange("GET", "/healthz", {})).has_value();
        probe_ = nullptr;
        if (!is_answering) continue;
        servers_.push_back({url.authority, entry.endpoint()});
        co_return true;
    }
    servers_.push_back({url.authority, found.begin()->endpoint()});
    co_return false;
}

asio::awaitable<void> load_run::rest_until_end() {
    if (!is_stopping_) {
        end_.expires_at(recorder_.until());
        co_await end_.async_wait(as_result);
    }
    is_stopping_ = true;
    recorder_.report().measured = std::max(recorder_.until() - recorder_.from(), clock::duration::zero());
}

asio::awaitable<void> load_run::rest(clock::duration length) {
    asio::steady_timer timer(io_, length);
    co_await timer.async_wait(as_result);
}

std::string load_run::fresh_name() {
    std::random_device entropy;
    return std::to_string(::getpid()) + "-" + std::to_string(entropy());
}

}  // namespace holdfast::cli
