#include "holdfast/http/server.hpp"

#include "holdfast/http/limits.hpp"
#include "holdfast/http/listener.hpp"
#include "holdfast/http/session_group.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace holdfast::http {

class server::implementation {
public:
    implementation(boost::asio::any_io_executor executor, server_settings settings, service::lease_service& service,
                   const service::readiness& readiness, metrics& metrics, domain::journal& journal)
        : sessions(std::make_shared<session_group>(executor, settings, service, readiness, metrics, journal)),
          door(std::make_shared<listener>(executor, settings.listen_address, settings.port, sessions, journal)) {}

    const std::shared_ptr<session_group> sessions;
    const std::shared_ptr<listener> door;
};

server::server(boost::asio::any_io_executor executor, server_settings settings, service::lease_service& service,
               const service::readiness& readiness, metrics& metrics, domain::journal& journal)
    : implementation_(std::make_unique<implementation>(std::move(executor), std::move(settings), service, readiness,
                                                       metrics, journal)) {}

server::~server() {
    implementation_->door->close();
    implementation_->sessions->cut_off();
}

std::uint16_t server::port() const noexcept {
    return implementation_->door->port();
}

void server::start() {
    implementation_->door->start();
}

boost::asio::awaitable<void> server::drain(std::chrono::milliseconds limit) {
    const auto sessions = implementation_->sessions;
    const auto door = implementation_->door;
    const auto until = std::chrono::steady_clock::now() + limit;
    sessions->begin_drain();
    bool empty = false;
    do {
        empty = co_await sessions->wait_until_empty(until);
        // Connections that were established but not yet accepted would be reset when the listener closes.
    } while (empty && door->accept_backlog() > 0);
    door->close();
    if (empty) co_return;
    sessions->cut_off();
    co_await sessions->wait_until_empty(std::chrono::steady_clock::now() + limits::cut_off_time_max);
}

}  // namespace holdfast::http
