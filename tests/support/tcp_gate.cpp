#include "support/tcp_gate.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <vector>

namespace holdfast::tests {
namespace {

[[noreturn]] void fail(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
}

void without_delay(int descriptor) {
    const int on = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// Sends all of it, blocking: the amounts are small, and a receiver that never reads is not what the gate imitates.
bool send_all(int descriptor, const char* data, std::size_t size) {
    while (size > 0) {
        const ssize_t sent = send(descriptor, data, size, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        data += sent;
        size -= static_cast<std::size_t>(sent);
    }
    return true;
}

}  // namespace

tcp_gate::tcp_gate(std::uint16_t server_port) : server_port_(server_port) {
    wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_ < 0) fail("eventfd");
    listen();
    thread_ = std::thread([this] { run(); });
}

tcp_gate::~tcp_gate() {
    {
        const std::lock_guard guard(mutex_);
        stopping_ = true;
        wake();
    }
    thread_.join();
    end_all(true);
    if (listener_ >= 0) close(listener_);
    close(wake_);
}

void tcp_gate::listen() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener_ < 0) fail("socket");
    const int on = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address = loopback(port_);
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("bind");
    if (::listen(listener_, 128) != 0) fail("listen");
    socklen_t length = sizeof address;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
}

void tcp_gate::pass() {
    const std::lock_guard guard(mutex_);
    stalled_to_server_ = stalled_to_client_ = false;
    if (listener_ < 0) listen();
    wake();
}

void tcp_gate::stall(direction which) {
    const std::lock_guard guard(mutex_);
    if (which != direction::to_client) stalled_to_server_ = true;
    if (which != direction::to_server) stalled_to_client_ = true;
    wake();
}

void tcp_gate::drop() {
    const std::lock_guard guard(mutex_);
    end_all(false);
}

void tcp_gate::reset() {
    const std::lock_guard guard(mutex_);
    end_all(true);
}

void tcp_gate::refuse() {
    const std::lock_guard guard(mutex_);
    if (listener_ >= 0) close(listener_);
    listener_ = -1;
    end_all(true);
    wake();
}

std::size_t tcp_gate::connections() const {
    const std::lock_guard guard(mutex_);
    return links_.size();
}

void tcp_gate::wake() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(wake_, &one, sizeof one);
}

bool tcp_gate::stalls(direction which) const noexcept {
    return which == direction::to_server ? stalled_to_server_ : stalled_to_client_;
}

void tcp_gate::end_all(bool with_reset) {
    for (link& each : links_)
        close_link(each, with_reset);
    links_.clear();
}

void tcp_gate::close_link(link& between, bool with_reset) {
    for (side* each : {&between.client, &between.server}) {
        if (each->descriptor < 0) continue;
        if (with_reset) {
            const linger at_once{1, 0};
            setsockopt(each->descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        } else {
            // Unread data would turn close() into a reset.
            std::array<char, 65536> lost;
            while (recv(each->descriptor, lost.data(), lost.size(), MSG_DONTWAIT) > 0) {
            }
        }
        close(each->descriptor);
        each->descriptor = -1;
    }
}

void tcp_gate::accept_one() {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    without_delay(client);
    link fresh{.client = {.descriptor = client}, .server = {}};
    fresh.server.descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = loopback(server_port_);
    if (connect(fresh.server.descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        close_link(fresh, true);
        return;
    }
    without_delay(fresh.server.descriptor);
    links_.push_back(fresh);
}

void tcp_gate::forward(link& between, side& from, side& to) {
    std::array<char, 65536> data;
    const ssize_t received = recv(from.descriptor, data.data(), data.size(), MSG_DONTWAIT);
    if (received > 0) {
        if (!send_all(to.descriptor, data.data(), static_cast<std::size_t>(received))) between.broken = true;
    } else if (received == 0) {
        from.ended = true;
        shutdown(to.descriptor, SHUT_WR);
    } else if (errno != EAGAIN && errno != EINTR) {
        between.broken = true;
    }
}

void tcp_gate::run() {
    // Readiness is asked without the mutex; what changed meanwhile is looked at again under it, so that a call such as
    // stall() is in force when it returns.
    std::vector<pollfd> watched;
    for (;;) {
        watched.clear();
        {
            const std::lock_guard guard(mutex_);
            if (stopping_) return;
            watched.push_back({wake_, POLLIN, 0});
            if (listener_ >= 0) watched.push_back({listener_, POLLIN, 0});
            for (const link& each : links_) {
                if (!stalled_to_server_ && !each.client.ended) watched.push_back({each.client.descriptor, POLLIN, 0});
                if (!stalled_to_client_ && !each.server.ended) watched.push_back({each.server.descriptor, POLLIN, 0});
            }
        }
        poll(watched.data(), watched.size(), 1000);
        const std::lock_guard guard(mutex_);
        if (stopping_) return;
        std::uint64_t woken = 0;
        [[maybe_unused]] const ssize_t drained = read(wake_, &woken, sizeof woken);
        pollfd incoming{listener_, POLLIN, 0};
        if (listener_ >= 0 && poll(&incoming, 1, 0) > 0) accept_one();
        for (auto each = links_.begin(); each != links_.end();) {
            if (!stalls(direction::to_server) && !each->client.ended) forward(*each, each->client, each->server);
            if (!each->broken && !stalls(direction::to_client) && !each->server.ended)
                forward(*each, each->server, each->client);
            const bool over = each->broken || (each->client.ended && each->server.ended);
            if (over) close_link(*each, each->broken);
            each = over ? links_.erase(each) : std::next(each);
        }
    }
}

}  // namespace holdfast::tests
