#include "support/http_client.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <thread>

namespace holdfast::test {
namespace {

using steady = std::chrono::steady_clock;

bool same_name(std::string_view left, std::string_view right) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [&](char a, char b) { return lower(a) == lower(b); });
}

/// Waits for `events` (or an error, which the next call on the descriptor will tell); false when it was too late.
bool wait_for(int descriptor, short events, steady::time_point until) {
    for (;;) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady::now());
        pollfd watched{descriptor, events, 0};
        const int count = ::poll(&watched, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
        if (count > 0) return true;
        if (count == 0) return false;
        if (errno != EINTR) throw http_client_error(std::string("poll: ") + std::strerror(errno));
    }
}

std::size_t parse_size(std::string_view text, int base) {
    std::size_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (fault != std::errc() || end == text.data()) throw http_client_error("no number: " + std::string(text));
    return value;
}

http_answer parse_head(std::string_view head) {
    http_answer answer;
    const auto line_end = head.find("\r\n");
    const auto line = head.substr(0, line_end);
    if (line.size() < 12 || !line.starts_with("HTTP/1."))
        throw http_client_error("no HTTP answer: " + std::string(line));
    answer.version = line.substr(0, 8);
    answer.status = static_cast<int>(parse_size(line.substr(9, 3), 10));
    if (line.size() > 13) answer.reason = line.substr(13);
    head.remove_prefix(line_end + 2);
    while (!head.starts_with("\r\n")) {
        const auto field = head.substr(0, head.find("\r\n"));
        const auto colon = field.find(':');
        if (colon == std::string_view::npos) throw http_client_error("no header field: " + std::string(field));
        auto value = field.substr(colon + 1);
        value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
        answer.headers.emplace_back(field.substr(0, colon), value);
        head.remove_prefix(field.size() + 2);
    }
    return answer;
}

}  // namespace

std::size_t http_answer::count(std::string_view name) const {
    return static_cast<std::size_t>(std::count_if(headers.begin(), headers.end(),
                                                  [&](const auto& header) { return same_name(header.first, name); }));
}

std::string http_answer::header(std::string_view name) const {
    for (const auto& [known, value] : headers)
        if (same_name(known, name)) return value;
    return {};
}

http_client http_client::connect(std::string_view address, std::uint16_t port, milliseconds patience) {
    const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0) throw http_client_error(std::string("socket: ") + std::strerror(errno));
    http_client client(descriptor, patience);
    sockaddr_in peer{};
    peer.sin_family = AF_INET;
    peer.sin_port = htons(port);
    if (::inet_pton(AF_INET, std::string(address).c_str(), &peer.sin_addr) != 1)
        throw http_client_error("no IPv4 address: " + std::string(address));
    if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&peer), sizeof peer) != 0) {
        if (errno != EINPROGRESS) throw http_client_error(std::string("connect: ") + std::strerror(errno));
        if (!wait_for(descriptor, POLLOUT, steady::now() + patience)) throw http_client_error("connect: too late");
        int fault = 0;
        socklen_t size = sizeof fault;
        ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &fault, &size);
        if (fault != 0) throw http_client_error(std::string("connect: ") + std::strerror(fault));
    }
    const int on = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return client;
}

http_client::http_client(int descriptor, milliseconds patience) : descriptor_(descriptor), patience_(patience) {
    ::fcntl(descriptor_, F_SETFL, ::fcntl(descriptor_, F_GETFL) | O_NONBLOCK);
}

http_client::http_client(http_client&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      patience_(other.patience_),
      unread_(std::move(other.unread_)),
      interim_(other.interim_) {}

http_client& http_client::operator=(http_client&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(patience_, other.patience_);
    std::swap(unread_, other.unread_);
    std::swap(interim_, other.interim_);
    return *this;
}

http_client::~http_client() {
    close();
}

bool http_client::send(std::string_view bytes) {
    const auto until = steady::now() + patience_;
    while (!bytes.empty()) {
        const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent >= 0) {
            bytes.remove_prefix(static_cast<std::size_t>(sent));
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!wait_for(descriptor_, POLLOUT, until))
                throw http_client_error("the peer did not take the bytes in time");
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return false;
        } else if (errno != EINTR) {
            throw http_client_error(std::string("send: ") + std::strerror(errno));
        }
    }
    return true;
}

bool http_client::send_slowly(std::string_view bytes, std::size_t piece_bytes, milliseconds pause) {
    while (!bytes.empty()) {
        const auto piece = bytes.substr(0, piece_bytes);
        if (!send(piece)) return false;
        bytes.remove_prefix(piece.size());
        if (!bytes.empty() && pause.count() > 0) std::this_thread::sleep_for(pause);
    }
    return true;
}

/// Appends what has arrived to unread_; false at the end of the stream (or a reset).
bool http_client::fill(steady::time_point until) {
    std::array<char, 16384> piece;
    for (;;) {
        const ssize_t received = ::recv(descriptor_, piece.data(), piece.size(), 0);
        if (received > 0) {
            unread_.append(piece.data(), static_cast<std::size_t>(received));
            return true;
        }
        if (received == 0 || errno == ECONNRESET) return false;
        if (errno == EAGAIN || errno == EWOULDBLOCK) {
            if (!wait_for(descriptor_, POLLIN, until)) throw http_client_error("no answer in time");
        } else if (errno != EINTR) {
            throw http_client_error(std::string("recv: ") + std::strerror(errno));
        }
    }
}

std::string http_client::take_through(std::string_view mark, steady::time_point until) {
    for (;;) {
        const auto found = unread_.find(mark);
        if (found != std::string::npos) return take(found + mark.size(), until);
        if (!fill(until))
            throw http_client_error("closed before or within an answer, after: " + unread_.substr(0, 200));
    }
}

std::string http_client::take(std::size_t bytes, steady::time_point until) {
    while (unread_.size() < bytes)
        if (!fill(until)) throw http_client_error("closed within the body of an answer");
    std::string taken = unread_.substr(0, bytes);
    unread_.erase(0, bytes);
    return taken;
}

void http_client::read_body(http_answer& answer, std::string_view method, steady::time_point until) {
    if (method == "HEAD" || answer.status / 100 == 1 || answer.status == 204 || answer.status == 304) return;
    if (same_name(answer.header("Transfer-Encoding"), "chunked")) {
        for (;;) {
            const auto size = parse_size(take_through("\r\n", until), 16);
            answer.body += take(size, until);
            take_through("\r\n", until);
            if (size == 0) return;
        }
    }
    if (answer.has("Content-Length")) {
        answer.body = take(parse_size(answer.header("Content-Length"), 10), until);
        return;
    }
    while (fill(until)) {
    }
    answer.body = std::exchange(unread_, {});
}

http_answer http_client::read_any(std::string_view method) {
    const auto until = steady::now() + patience_;
    http_answer answer = parse_head(take_through("\r\n\r\n", until));
    read_body(answer, method, until);
    return answer;
}

http_answer http_client::read(std::string_view method) {
    for (;;) {
        http_answer answer = read_any(method);
        if (answer.status >= 200) return answer;
        ++interim_;
    }
}

std::string http_client::format(std::string_view method, std::string_view target, std::string_view body,
                                const header_list& headers) {
    const auto named = [&](std::string_view name) {
        return std::any_of(headers.begin(), headers.end(),
                           [&](const auto& header) { return same_name(header.first, name); });
    };
    std::string text = std::string(method) + ' ' + std::string(target) + " HTTP/1.1\r\n";
    if (!named("Host")) text += "Host: test\r\n";
    if (!body.empty() && !named("Content-Type")) text += "Content-Type: application/json\r\n";
    if (!body.empty() && !named("Content-Length") && !named("Transfer-Encoding"))
        text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    for (const auto& [name, value] : headers)
        text += name + ": " + value + "\r\n";
    return text + "\r\n" + std::string(body);
}

http_answer http_client::request(std::string_view method, std::string_view target, std::string_view body,
                                 const header_list& headers) {
    send(format(method, target, body, headers));
    return read(method);
}

bool http_client::closed_within(milliseconds patience) {
    try {
        return unread_.empty() && !fill(steady::now() + patience);
    } catch (const http_client_error&) {
        return false;
    }
}

bool http_client::silent_for(milliseconds time) {
    return unread_.empty() && !wait_for(descriptor_, POLLIN, steady::now() + time);
}

void http_client::shutdown_send() {
    ::shutdown(descriptor_, SHUT_WR);
}

void http_client::reset() {
    const linger hard{1, 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close();
}

void http_client::close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

}  // namespace holdfast::test
