#ifndef HOLDFAST_PG_HEARTBEAT_HPP
#define HOLDFAST_PG_HEARTBEAT_HPP

#include "holdfast/domain/journal.hpp"
#include "holdfast/domain/place.hpp"
#include "holdfast/domain/queue_outcomes.hpp"
#include "holdfast/pg/connection.hpp"
#include "holdfast/pg/database_settings.hpp"
#include "holdfast/pg/socket_watch.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::pg {

/// Says every second that this node lives, and surveys where its waiters stand: from a thread and a session of its own,
/// so that it never stands behind commands. Now and then removes what dead nodes have left in the waiting lines.
class heartbeat {
public:
    using steady_time = std::chrono::steady_clock::time_point;

    /// Called on the I/O thread, never after stop().
    struct events {
        std::function<void(std::vector<domain::surveyed_place> places, steady_time began)> surveyed;
        /// Tidying up has offered locks to these.
        std::function<void(std::vector<domain::wake> wakes)> wakes;
    };

    /// References must outlive the heartbeat. Starts nothing yet.
    heartbeat(boost::asio::any_io_executor executor, const database_settings& settings, const query_texts& texts,
              domain::journal& journal, events events);
    ~heartbeat();

    /// I/O thread only, as are request_stop() and stop(). The schema must fit by now.
    void start();
    /// Tells the thread to end and shuts its socket down; does not wait. No event is called any more.
    void request_stop();
    /// The same, and joins the thread; may block for as long as a connection attempt under way takes.
    void stop();

    /// Surveys at once. Any thread.
    void survey_now();

    /// Who this node is, while the others take it for living. Any thread.
    std::optional<domain::node_id> node() const noexcept;
    /// When the last beat was committed; nothing before the first. Any thread.
    std::optional<steady_time> last_beat() const noexcept;

private:
    void watch_socket();

    void run();
    void serve_session();
    void draw_node(connection& session);
    void beat(connection& session);
    void survey(connection& session);
    void tidy(connection& session);
    void found_lost(const std::string& why);
    bool pause_until(steady_time moment);

    boost::asio::any_io_executor executor_;
    const database_settings& settings_;
    const query_texts& texts_;
    domain::journal& journal_;
    std::shared_ptr<events> events_;

    boost::asio::steady_timer watch_timer_;
    socket_watch watch_;
    std::thread thread_;

    std::mutex mutex_;
    std::condition_variable waking_;
    bool stop_ = false;
    bool survey_asked_ = false;

    std::atomic<std::int64_t> node_{0};
    std::atomic<steady_time::rep> last_beat_{0};      ///< 0: none yet.
    std::atomic<steady_time::rep> taken_as_sent_{0};  ///< When the last beat that was committed had been sent.

    // The heartbeat's thread only.
    std::string channel_;
    bool lost_ = false;
    steady_time tidy_due_{};
};

}  // namespace holdfast::pg

#endif
