#ifndef HOLDFAST_PG_MONITOR_HPP
#define HOLDFAST_PG_MONITOR_HPP

#include "holdfast/domain/journal.hpp"
#include "holdfast/pg/connection.hpp"
#include "holdfast/pg/database_clock.hpp"
#include "holdfast/pg/database_settings.hpp"
#include "holdfast/pg/socket_watch.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace holdfast::pg {

/// Watches the database from a thread and a session of its own: waits for it, migrates, then probes whether it can be
/// written to, keeps the reading of its clock fresh, sweeps rows that ended long ago, and has statistics taken when the
/// table has grown.
class monitor {
public:
    /// Both are called on the I/O thread, at most one of them, once.
    struct events {
        std::function<void()> schema_ready;
        std::function<void(std::string reason)> refused;
    };

    /// References must outlive the monitor. Starts nothing yet.
    monitor(boost::asio::any_io_executor executor, const database_settings& settings, const query_texts& texts,
            database_clock& clock, domain::journal& journal, events events);
    ~monitor();

    /// I/O thread only, as are request_stop() and stop().
    void start();
    /// Tells the thread to end and shuts its socket down; does not wait. No event is called any more.
    void request_stop();
    /// The same, and joins the thread; may block for as long as a connection attempt under way takes.
    void stop();

    /// A probe found the session writable a moment ago. Any thread.
    bool writable() const noexcept;

private:
    using steady_time = std::chrono::steady_clock::time_point;

    void watch_socket();

    void run();
    bool prepare_schema();
    void check_schema_once();
    void refuse(std::string reason);
    void serve_session();
    void probe(connection& session);
    void check_timeout(std::int64_t statement_timeout_ms);
    void take_statistics(connection& session);
    void sweep_step(connection& session);
    void found_writable();
    void found_lost(const std::string& why);
    bool pause(std::chrono::milliseconds length);

    boost::asio::any_io_executor executor_;
    const database_settings& settings_;
    const query_texts& texts_;
    database_clock& clock_;
    domain::journal& journal_;
    std::shared_ptr<events> events_;

    boost::asio::steady_timer watch_timer_;
    socket_watch watch_;
    std::thread thread_;

    std::mutex mutex_;
    std::condition_variable stopping_;
    bool stop_ = false;

    std::atomic<steady_time::rep> writable_until_{steady_time::min().time_since_epoch().count()};

    // The monitor's thread only.
    bool lost_ = true;
    steady_time complain_again_{};
    std::optional<std::int64_t> timeout_warned_ms_;
    steady_time statistics_allowed_{};
    steady_time sweep_due_{};
    std::optional<std::int64_t> sweep_page_;  ///< Where the sweep under way goes on.
    std::int64_t swept_rows_ = 0;
};

}  // namespace holdfast::pg

#endif
