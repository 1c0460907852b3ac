#ifndef HOLDFAST_HTTP_LISTENER_HPP
#define HOLDFAST_HTTP_LISTENER_HPP

#include "holdfast/domain/journal.hpp"
#include "holdfast/http/session_group.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace holdfast::http {

/// Accepts TCP connections and hands them to a group. No failure to accept ends it, and none makes it spin. I/O thread
/// only.
class listener : public std::enable_shared_from_this<listener> {
public:
    /// Binds and listens. Throws boost::system::system_error when the address cannot be bound. `journal` must outlive
    /// it.
    listener(boost::asio::any_io_executor executor, const std::string& address, std::uint16_t port,
             std::shared_ptr<session_group> sessions, domain::journal& journal);

    std::uint16_t port() const noexcept { return port_; }

    /// Begins to accept; the loop owns the listener until close().
    void start();
    /// Accepts at once what is already established; returns how many that were.
    std::size_t accept_backlog();
    /// Stops. Whatever was not accepted is reset.
    void close();

private:
    boost::asio::awaitable<void> accept_forever();
    void admit(boost::asio::ip::tcp::socket socket);
    void report(boost::system::error_code fault);

    boost::asio::ip::tcp::acceptor acceptor_;
    std::shared_ptr<session_group> sessions_;
    domain::journal& journal_;
    std::uint16_t port_;
    std::chrono::steady_clock::time_point reported_{};
};

}  // namespace holdfast::http

#endif
