#include "holdfast/pg/socket_watch.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace holdfast::pg {

void socket_watch::attach(int socket) {
    const std::scoped_lock lock(mutex_);
    if (duplicate_ >= 0) ::close(duplicate_);
    duplicate_ = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
}

void socket_watch::detach() noexcept {
    const std::scoped_lock lock(mutex_);
    if (duplicate_ >= 0) ::close(duplicate_);
    duplicate_ = -1;
}

void socket_watch::begin(steady_time until) {
    const std::scoped_lock lock(mutex_);
    until_ = until;
}

void socket_watch::end() {
    const std::scoped_lock lock(mutex_);
    until_ = steady_time::max();
}

bool socket_watch::shut_down_if_overdue(steady_time now) {
    const std::scoped_lock lock(mutex_);
    if (until_ > now || duplicate_ < 0) return false;
    shut_down_locked();
    return true;
}

void socket_watch::shut_down_if_running() {
    const std::scoped_lock lock(mutex_);
    if (until_ != steady_time::max()) shut_down_locked();
}

void socket_watch::shut_down_locked() noexcept {
    if (duplicate_ >= 0) ::shutdown(duplicate_, SHUT_RDWR);
    until_ = steady_time::max();
}

}  // namespace holdfast::pg
