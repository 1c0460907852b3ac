#ifndef HOLDFAST_HTTP_SERVER_HPP
#define HOLDFAST_HTTP_SERVER_HPP

#include "holdfast/domain/journal.hpp"
#include "holdfast/http/metrics.hpp"
#include "holdfast/http/server_settings.hpp"
#include "holdfast/service/lease_service.hpp"
#include "holdfast/service/readiness.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <memory>

namespace holdfast::http {

/// The listener and its sessions. Created, used and destroyed on the I/O thread.
class server {
public:
    /// Binds and listens, but accepts nothing yet. Throws boost::system::system_error when the address cannot be bound.
    /// `service`, `readiness`, `metrics` and `journal` must outlive the server.
    server(boost::asio::any_io_executor executor, server_settings settings, service::lease_service& service,
           const service::readiness& readiness, metrics& metrics, domain::journal& journal);
    ~server();

    /// The port that was bound.
    std::uint16_t port() const noexcept;

    /// Begins to accept.
    void start();

    /// From now on every answer closes its connection, and connections that stay idle are closed after a short grace in
    /// which a request that was already on its way is still served. Accepting goes on until the last connection is gone
    /// or `limit` has passed; then the listener closes. Completes when no session is left; after `limit` the rest is
    /// cut off.
    boost::asio::awaitable<void> drain(std::chrono::milliseconds limit);

private:
    class implementation;
    std::unique_ptr<implementation> implementation_;
};

}  // namespace holdfast::http

#endif
