#include "holdfast/cli/load_test.hpp"

#include "holdfast/cli/load_run.hpp"
#include "holdfast/cli/load_worker.hpp"
#include "holdfast/cli/start_schedule.hpp"
#include "holdfast/cli/waiting_load.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <deque>
#include <random>
#include <utility>

namespace holdfast::cli {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;
using clock = std::chrono::steady_clock;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr auto pause_after_error = 10ms;
constexpr auto pause_after_failed_connect = 100ms;
constexpr auto silence_to_check_after = 1s;
constexpr std::size_t opened_at_once = 32;

/// Every kind of load but that of waiters: each connection does its rounds, and needs nobody else.
class steady_load final : public load_run {
public:
    explicit steady_load(const load_plan& plan) : load_run(plan) {}

    /// To be called after run().
    void add_figures(load_report& report);

private:
    asio::awaitable<void> apply_load() override;
    void close_stuck(clock::time_point limit) override;
    void wake_all() override;

    asio::awaitable<void> open_idle_connections();
    asio::awaitable<void> open_every_nth(std::size_t first);

    asio::awaitable<void> work(load_worker& worker);
    asio::awaitable<void> work_by_schedule(load_worker& worker);
    asio::awaitable<void> rest_of(load_worker& worker, clock::duration length);

    std::deque<load_worker> workers_;
    std::deque<client::http_connection> idle_;
    std::optional<start_schedule> schedule_;  // of an open loop
};

void steady_load::add_figures(load_report& report) {
    for (client::http_connection& connection : idle_)
        if (!connection.was_closed_by_server()) ++report.idle_connections_kept;
    if (!schedule_) return;
    const auto due = static_cast<std::uint64_t>(schedule_->due_within(recorder().from(), recorder().until()));
    report.never_started = due - std::min(due, report.started);
}

void steady_load::close_stuck(clock::time_point limit) {
    for (load_worker& worker : workers_)
        worker.close_if_stuck(limit);
    for (client::http_connection& connection : idle_)
        connection.close_if_stuck(limit);
}

void steady_load::wake_all() {
    for (load_worker& worker : workers_)
        worker.pause.cancel();
}

asio::awaitable<void> steady_load::open_idle_connections() {
    for (std::size_t n = 0; n < plan().idle_connections; ++n) {
        const found_server& server = servers()[n % servers().size()];
        idle_.emplace_back(executor(), server.endpoint, server.authority);
    }
    for (std::size_t first = 0; first < opened_at_once; ++first)
        spawn(open_every_nth(first));
    while (running() > 1)  // this coroutine is the one that remains
        co_await rest(5ms);
}

asio::awaitable<void> steady_load::open_every_nth(std::size_t first) {
    for (std::size_t n = first; n < idle_.size() && !is_stopping(); n += opened_at_once) {
        if (const error_code fault = co_await idle_[n].open()) {
            recorder().failed("connect: " + fault.message());
            continue;
        }
        const auto answered = co_await idle_[n].exchange("GET", "/healthz", {});
        if (!answered)
            recorder().failed("transport: " + answered.error().message());
        else if (answered->status != 200)
            recorder().failed(std::to_string(answered->status));
        else
            ++recorder().report().idle_connections_opened;
    }
}

asio::awaitable<void> steady_load::apply_load() {
    co_await open_idle_connections();
    if (is_stopping()) co_return;
    std::random_device entropy;
    const std::string run = fresh_name();
    const clock::time_point begin = clock::now();
    recorder().measure(begin + plan().warmup, begin + plan().warmup + plan().length);
    if (plan().rounds_per_second > 0) schedule_.emplace(begin, plan().rounds_per_second);
    for (std::size_t n = 0; n < plan().connections; ++n) {
        std::string owner = "bench-" + run + "-" + std::to_string(n);
        load_worker& added = workers_.emplace_back(executor(), plan(), recorder(), servers()[n % servers().size()],
                                                   std::move(owner), entropy());
        spawn(schedule_ ? work_by_schedule(added) : work(added));
    }
    co_await rest_until_end();
}

asio::awaitable<void> steady_load::work(load_worker& worker) {
    while (!is_stopping()) {
        const bool is_connected = co_await worker.connect();
        bool is_well = is_connected;
        if (is_connected) is_well = co_await worker.do_round(clock::now());
        if (!is_well) co_await rest_of(worker, is_connected ? pause_after_error : pause_after_failed_connect);
    }
    worker.close();
}

/// A free connection takes the next start and waits for its moment. So one that is due finds a connection waiting for
/// it, or all are busy and the first to become free takes it late.
asio::awaitable<void> steady_load::work_by_schedule(load_worker& worker) {
    while (!is_stopping()) {
        const bool is_connected = co_await worker.connect();
        if (!is_connected) {
            co_await rest_of(worker, pause_after_failed_connect);
            continue;
        }
        if (is_stopping()) break;
        const clock::time_point due = schedule_->take();
        const clock::duration ahead = due - clock::now();
        if (due < recorder().until() && ahead > clock::duration::zero()) co_await rest_of(worker, ahead);
        if (due >= recorder().until()) break;  // perhaps only since a signal came
        if (ahead > silence_to_check_after) worker.notice_close();
        if (recorder().is_measured(due)) ++recorder().report().started;
        const bool is_well = co_await worker.do_round(due);
        if (!is_well) co_await rest_of(worker, pause_after_error);
    }
    worker.close();
}

asio::awaitable<void> steady_load::rest_of(load_worker& worker, clock::duration length) {
    worker.pause.expires_after(length);
    co_await worker.pause.async_wait(as_result);
}

}  // namespace

std::optional<load_report> run_load_test(const load_plan& plan) {
    if (plan.kind == load_kind::wait) return run_waiting_load(plan);
    steady_load load(plan);
    std::optional<load_report> report = load.run();
    if (report) load.add_figures(*report);
    return report;
}

}  // namespace holdfast::cli
