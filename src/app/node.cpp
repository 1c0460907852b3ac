#include "holdfast/app/node.hpp"

#include "holdfast/app/descriptor_limit.hpp"
#include "holdfast/app/metered_queue.hpp"
#include "holdfast/http/server.hpp"
#include "holdfast/pg/database.hpp"
#include "holdfast/service/lease_service.hpp"
#include "holdfast/service/readiness.hpp"
#include "holdfast/service/wait_registry.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::app {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using domain::log_level;
using std::chrono::milliseconds;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr milliseconds readiness_watch_interval = 50ms;
constexpr milliseconds last_words = 200ms;
/// For giving back what could not be delivered, and for keeping places: each one statement.
constexpr milliseconds last_gifts = 1'000ms;

/// The database, the logs and the listener need some beside the clients'.
constexpr std::uint64_t descriptors_beside_clients = 64;

[[noreturn]] void end_process(log_journal& journal, int exit_code) {
    journal.flush(last_words);
    std::_Exit(exit_code);
}

/// Members are destroyed from the last to the first: the server's sessions use the service, it uses the registry of
/// waiters and the database, all of them run on the context.
class node final : public service::readiness {
public:
    node(const settings& settings, log_journal& journal, const build_name& build)
        : settings_(settings),
          journal_(journal),
          metrics_(build),
          signals_(io_, SIGTERM, SIGINT),
          watch_timer_(io_),
          database_(io_.get_executor(), settings.database, journal, metrics_),
          queue_(database_.queue(), metrics_),
          registry_(io_.get_executor(), queue_, settings.waiters_max, settings.request_deadline),
          service_(database_.store(), queue_, registry_, settings.request_deadline) {
        metrics_.ask_state([this] { return node_state{ready(), database_.waiting(), registry_.waiting()}; });
    }

    bool ready() const noexcept override { return !is_draining_ && database_.ready(); }
    bool draining() const noexcept override { return is_draining_; }

    int run();

private:
    bool listen();
    void refuse(const std::string& reason);
    void begin_to_drain(milliseconds delay, milliseconds limit);
    void spawn(asio::awaitable<void> task);
    void fail(const std::exception_ptr& fault);

    asio::awaitable<void> obey_signals();
    asio::awaitable<void> watch_readiness();
    asio::awaitable<void> drain(milliseconds delay, milliseconds limit);

    const settings& settings_;
    log_journal& journal_;
    prometheus_metrics metrics_;
    asio::io_context io_{1};
    asio::signal_set signals_;
    asio::steady_timer watch_timer_;
    pg::database database_;
    metered_queue queue_;
    service::wait_registry registry_;
    service::lease_service service_;
    std::optional<http::server> server_;
    bool is_draining_ = false;
    int exit_code_ = 0;
};

int node::run() {
    if (!listen()) return 1;
    spawn(obey_signals());
    spawn(watch_readiness());
    database_.start([this](std::string reason) { refuse(reason); });
    try {
        io_.run();
    } catch (...) {
        fail(std::current_exception());
    }
    journal_.write(log_level::info, "stopped", {});
    return exit_code_;
}

bool node::listen() {
    const std::string& address = settings_.server.listen_address;
    try {
        server_.emplace(io_.get_executor(), settings_.server, service_, *this, metrics_, journal_);
    } catch (const boost::system::system_error& error) {
        const std::string reason = error.code().message();
        journal_.write(log_level::error, "cannot_listen",
                       {{"address", address}, {"port", std::int64_t{settings_.server.port}}, {"reason", reason}});
        return false;
    }
    server_->start();
    journal_.write(log_level::info, "listening", {{"address", address}, {"port", std::int64_t{server_->port()}}});
    return true;
}

void node::refuse(const std::string& reason) {
    journal_.write(log_level::error, "database_refused", {{"reason", reason}});
    exit_code_ = 1;
    if (!is_draining_) begin_to_drain(0ms, 0ms);
}

/// Not ready from this moment on, and nobody waits here any longer: the sooner they can stand in line elsewhere, the
/// better. The rest follows in drain().
void node::begin_to_drain(milliseconds delay, milliseconds limit) {
    is_draining_ = true;
    journal_.write(log_level::info, "draining",
                   {{"delay_ms", std::int64_t{delay.count()}}, {"limit_ms", std::int64_t{limit.count()}}});
    registry_.drain();
    spawn(drain(delay, limit));
}

void node::spawn(asio::awaitable<void> task) {
    asio::co_spawn(io_, std::move(task), [this](std::exception_ptr fault) {
        if (fault) fail(fault);
    });
}

void node::fail(const std::exception_ptr& fault) {
    std::string reason = "not a std::exception";
    try {
        std::rethrow_exception(fault);
    } catch (const std::exception& error) {
        reason = error.what();
    } catch (...) {
        // The reason stays what it is.
    }
    journal_.write(log_level::error, "fault", {{"reason", reason}});
    end_process(journal_, 1);
}

asio::awaitable<void> node::obey_signals() {
    for (;;) {
        auto [fault, signal] = co_await signals_.async_wait(as_result);
        if (fault) co_return;  // drained: the process is about to end by itself
        journal_.write(log_level::info, "signal", {{"number", std::int64_t{signal}}});
        if (is_draining_) end_process(journal_, 128 + signal);
        begin_to_drain(settings_.drain_delay, settings_.drain_limit);
    }
}

asio::awaitable<void> node::watch_readiness() {
    bool was_ready = false;
    bool was_ever_ready = false;
    while (!is_draining_) {
        const bool is_ready = ready();
        if (is_ready && !was_ever_ready) journal_.write(log_level::info, "ready", {});
        if (is_ready && !was_ready && was_ever_ready) journal_.write(log_level::info, "ready_again", {});
        if (!is_ready && was_ready) journal_.write(log_level::warning, "not_ready", {});
        was_ready = is_ready;
        was_ever_ready = was_ever_ready || is_ready;
        watch_timer_.expires_after(readiness_watch_interval);
        co_await watch_timer_.async_wait(as_result);
    }
}

asio::awaitable<void> node::drain(milliseconds delay, milliseconds limit) {
    watch_timer_.cancel();
    asio::steady_timer timer(io_, delay);
    co_await timer.async_wait(as_result);
    co_await server_->drain(limit);
    // The places of those who waited here should be kept, and what they could not be told given back.
    co_await registry_.settle(last_gifts);
    // Every answer is out, so what the database still runs concerns nobody, but for its own time limit it may run on.
    co_await database_.stop(settings_.database.statement_timeout);
    signals_.clear();   // from here on a signal has its usual effect
    signals_.cancel();  // clear() leaves the wait for one pending; it ends now, and with it run()
}

void prepare_process(const settings& settings, log_journal& journal) {
    std::signal(SIGPIPE, SIG_IGN);  // libpq and Asio ask for EPIPE themselves; nothing else may end us here
    std::signal(SIGHUP, SIG_IGN);   // a closed terminal is no reason to stop serving
    const std::uint64_t limit = raise_descriptor_limit();
    const std::uint64_t needed = settings.server.connections_max + descriptors_beside_clients;
    if (limit < needed)
        journal.write(log_level::warning, "descriptor_limit_low",
                      {{"limit", static_cast<std::int64_t>(limit)}, {"needed", static_cast<std::int64_t>(needed)}});
}

}  // namespace

int run_node(const settings& settings, log_journal& journal, const build_name& build) {
    prepare_process(settings, journal);
    node node(settings, journal, build);
    return node.run();
}

}  // namespace holdfast::app
