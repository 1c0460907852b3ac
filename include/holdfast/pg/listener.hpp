#ifndef HOLDFAST_PG_LISTENER_HPP
#define HOLDFAST_PG_LISTENER_HPP

#include "holdfast/domain/journal.hpp"
#include "holdfast/domain/place.hpp"
#include "holdfast/pg/database_settings.hpp"
#include "holdfast/pg/socket_watch.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

struct pg_conn;

namespace holdfast::pg {

/// Hears what other nodes announce, on a session of its own that goes past any pooler. A thread connects, since that
/// blocks; once the session listens it belongs to the I/O thread, which waits for its socket. The node's own beats come
/// in here too: when they stay away although they were sent, the session is deaf and is opened anew.
///
/// Uses libpq itself: libpqxx 6.4 reconnects in silence, so that a gap goes unseen, and takes leave of a channel with a
/// statement that may block.
class listener {
public:
    using steady_time = std::chrono::steady_clock::time_point;

    /// Called on the I/O thread, never after request_stop().
    struct events {
        /// Something was said about these.
        std::function<void(std::vector<domain::wake> wakes)> heard;
        /// From now on nothing is missed; something may have been before.
        std::function<void()> connected;
        /// Who this node is, and when it last had a beat committed.
        std::function<std::optional<domain::node_id>()> node;
        std::function<std::optional<steady_time>()> last_beat;
    };

    /// References must outlive the listener. Starts nothing yet.
    listener(boost::asio::any_io_executor executor, const database_settings& settings, domain::journal& journal,
             events events);
    ~listener();

    /// All members are for the I/O thread.
    void start();
    /// Closes the session and tells the thread to end; does not wait.
    void request_stop();
    /// The same, and joins the thread; may block for as long as a connection attempt under way takes.
    void stop();

private:
    struct closer {
        void operator()(pg_conn* session) const noexcept;
    };
    using session_ptr = std::unique_ptr<pg_conn, closer>;

    // On the I/O thread.
    void watch();
    void adopt(session_ptr session);
    void wait_readable();
    void read();
    void lose(const std::string& why);
    void close();

    // On the connecting thread.
    void run();
    session_ptr connect();
    bool pause(std::chrono::milliseconds length);
    void complain(const std::string& why);

    boost::asio::any_io_executor executor_;
    database_settings settings_;
    std::string channel_;
    domain::journal& journal_;
    events events_;
    std::shared_ptr<bool> alive_ =
        std::make_shared<bool>(true);  ///< What the thread has posted may come after the end.

    // I/O thread only.
    boost::asio::steady_timer watch_timer_;
    session_ptr session_;
    std::optional<boost::asio::posix::stream_descriptor> readable_;  ///< On a duplicate: libpq closes its own.
    steady_time heard_at_{};                                         ///< The last own beat, or when it began to listen.

    socket_watch watch_;  ///< While the thread connects.
    std::thread thread_;
    std::mutex mutex_;
    std::condition_variable waking_;
    bool stop_ = false;
    bool wanted_ = true;  ///< A session.

    // The connecting thread only.
    bool complained_ = false;
};

}  // namespace holdfast::pg

#endif
