#ifndef HOLDFAST_CLIENT_HTTP_CONNECTION_HPP
#define HOLDFAST_CLIENT_HTTP_CONNECTION_HPP

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/system/result.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::client {

/// What a server said. `body` is valid until the connection's next exchange or its end.
struct answer {
    unsigned status = 0;
    std::string_view body;
};

/// One keep-alive HTTP/1.1 connection: one request after the other, no pipelining, memory reused from request to
/// request. Not thread-safe: everything on the executor's one thread. Keeps no timer of its own; who needs a bound
/// calls close_if_stuck() now and then, which is one timer for thousands of connections.
class http_connection {
public:
    using clock = std::chrono::steady_clock;

    /// Connects nothing yet. `authority` goes into the Host header.
    http_connection(boost::asio::any_io_executor executor, boost::asio::ip::tcp::endpoint server,
                    std::string authority);
    ~http_connection();

    /// Connects, dropping what was connected before.
    boost::asio::awaitable<boost::system::error_code> open();

    /// True from a successful open() until close(), a failed exchange, or an answer after which the server closes.
    bool is_open() const noexcept;

    /// Sends one request and returns its answer, whatever the status. `body`, if not empty, is sent as
    /// application/json. After an error the connection is closed, and a request with effects may have taken effect. An
    /// answer with a body above 1 MiB is an error. The views must stay valid until it completes; no other call but
    /// close_if_stuck() meanwhile.
    boost::asio::awaitable<boost::system::result<answer>> exchange(std::string_view method, std::string_view target,
                                                                   std::string_view body);

    /// Ends the open() or exchange() in progress with `timed_out` if it began before `moment`.
    void close_if_stuck(clock::time_point moment);

    /// True when the server has closed its side or sent something unasked. Only while no exchange is in progress.
    bool was_closed_by_server();

    void close() noexcept;

private:
    class implementation;
    std::unique_ptr<implementation> implementation_;
};

}  // namespace holdfast::client

#endif
