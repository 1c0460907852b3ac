#ifndef HOLDFAST_TESTS_SUPPORT_HTTP_NODE_HPP
#define HOLDFAST_TESTS_SUPPORT_HTTP_NODE_HPP

// The HTTP layer of a node without a database, served by a thread of its own: real sessions over socketpairs (or, on
// request, a real listener), the memory store and a queue of waiters that does as told behind them, a clock that the
// test sets.

#include "holdfast/app/prometheus_metrics.hpp"
#include "holdfast/domain/journal.hpp"
#include "holdfast/http/server.hpp"
#include "holdfast/http/session_group.hpp"
#include "holdfast/service/lease_service.hpp"
#include "holdfast/service/readiness.hpp"
#include "holdfast/service/wait_registry.hpp"
#include "holdfast/store/memory_store.hpp"

#include "support/http_client.hpp"
#include "support/told_queue.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {

/// Keeps what was logged: one map of texts a line, the event under "event", the level under "level".
class kept_journal final : public domain::journal {
public:
    using line = std::map<std::string, std::string>;

    void write(domain::log_level level, std::string_view event,
               std::initializer_list<domain::log_field> fields) noexcept override;
    /// The lines of that event so far.
    std::vector<line> lines(std::string_view event) const;

private:
    mutable std::mutex mutex_;
    std::vector<line> lines_;
};

/// The memory store with faults: answers as told instead of asking the memory store.
class faulty_store final : public store::lease_store {
public:
    enum class fault { none, unavailable, overloaded, outcome_unknown, internal, exception, stuck };

    explicit faulty_store(store::memory_store::clock now) : memory_(std::move(now)) {}

    /// From any thread; holds until told otherwise. `stuck` answers only when the waiting coroutine is cancelled.
    std::atomic<fault> now{fault::none};
    /// How many commands have come in.
    std::atomic<int> asked{0};

    boost::asio::awaitable<domain::result<domain::acquire_outcome>> acquire(domain::acquire_command command,
                                                                            store::deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::renew_outcome>> renew(domain::renew_command command,
                                                                        store::deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::release_result>> release(domain::release_command command,
                                                                           store::deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::look_outcome>> look(domain::look_command command,
                                                                      store::deadline deadline) override;

private:
    boost::asio::awaitable<boost::system::error_code> meet_fault();

    store::memory_store memory_;
};

class told_readiness final : public service::readiness {
public:
    std::atomic<bool> is_ready{true};
    std::atomic<bool> is_draining{false};

    bool ready() const noexcept override { return is_ready; }
    bool draining() const noexcept override { return is_draining; }
};

class http_node {
public:
    explicit http_node(http::server_settings settings = {}, std::size_t waiters_max = 10'000);
    ~http_node();

    /// A new connection, over a socketpair.
    http_client connect();
    /// One request on a connection of its own.
    http_answer request(std::string_view method, std::string_view target, std::string_view body = {},
                        const http_client::header_list& headers = {});

    /// The clock that leases are stamped with; it stands still between calls. Starts at 2024-05-06 07:08:09.
    void advance(std::chrono::microseconds time) { clock_us_ += time.count(); }

    /// Runs `action` on the I/O thread and waits for it.
    void on_io_thread(const std::function<void()>& action);
    /// Store and queue answer like this.
    void fail_with(faulty_store::fault kind);
    /// Offers the lock to who stands first in line for it.
    void offer(std::string_view resource);
    /// What a node does at once when it is told to end.
    void drain_waiters();
    /// Begins to drain the sessions of connect().
    void begin_drain();
    void cut_off();
    /// True when no session of connect() is left within `patience`.
    bool empty_within(std::chrono::milliseconds patience);

    /// Opens a real listener on a free port; the settings are those of the node.
    std::uint16_t listen();
    /// Drains that listener; returns how long it took.
    std::chrono::milliseconds drain_listener(std::chrono::milliseconds limit);

    faulty_store& store() { return store_; }
    told_queue& queue() { return queue_; }
    told_readiness& readiness() { return readiness_; }
    const kept_journal& journal() const { return journal_; }
    /// The real ones. Counting is safe from any thread; the page is the I/O thread's.
    app::prometheus_metrics& metrics() { return metrics_; }

private:
    http::server_settings settings_;
    std::atomic<std::int64_t> clock_us_;
    kept_journal journal_;
    app::prometheus_metrics metrics_{{"1.2.3", "abc"}};
    told_readiness readiness_;
    boost::asio::io_context context_{1};
    faulty_store store_;
    told_queue queue_;
    service::wait_registry registry_;
    service::lease_service service_;
    boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
    std::shared_ptr<http::session_group> sessions_;
    std::unique_ptr<http::server> server_;
    std::thread thread_;
};

}  // namespace holdfast::test

#endif
