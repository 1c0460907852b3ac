#ifndef HOLDFAST_PG_SOCKET_WATCH_HPP
#define HOLDFAST_PG_SOCKET_WATCH_HPP

#include <chrono>
#include <mutex>

namespace holdfast::pg {

/// Frees a database thread that is stuck in a socket. A stopped backend, or a network that swallows everything, keeps
/// libpq waiting although every timeout of the server and the kernel has passed; shutting the socket down wakes it with
/// "end of file". Owns a duplicate of the descriptor, so that shutting down never meets a number that was closed and
/// given out again. The owning thread attaches, begins and ends; any thread may shut down.
class socket_watch {
public:
    using steady_time = std::chrono::steady_clock::time_point;

    socket_watch() = default;
    socket_watch(const socket_watch&) = delete;
    socket_watch& operator=(const socket_watch&) = delete;
    ~socket_watch() { detach(); }

    /// From now on `socket`, of a new connection, is watched.
    void attach(int socket);
    void detach() noexcept;

    /// What runs now should be over by `until`.
    void begin(steady_time until);
    void end();

    /// Shuts the socket down if what runs now is overdue; true if it did.
    bool shut_down_if_overdue(steady_time now);
    /// Shuts the socket down if anything runs now, overdue or not.
    void shut_down_if_running();

private:
    void shut_down_locked() noexcept;

    std::mutex mutex_;
    int duplicate_ = -1;
    steady_time until_ = steady_time::max();
};

}  // namespace holdfast::pg

#endif
