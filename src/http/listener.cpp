#include "holdfast/http/listener.hpp"

#include "holdfast/http/limits.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace holdfast::http {

namespace asio = boost::asio;
using asio::ip::tcp;

listener::listener(asio::any_io_executor executor, const std::string& address, std::uint16_t port,
                   std::shared_ptr<session_group> sessions, domain::journal& journal)
    : acceptor_(executor, tcp::endpoint(asio::ip::make_address(address), port), /*reuse_addr=*/true),
      sessions_(std::move(sessions)),
      journal_(journal),
      port_(acceptor_.local_endpoint().port()) {
    // So that accept_backlog() can ask without waiting.
    acceptor_.non_blocking(true);
}

void listener::start() {
    auto on_end = [self = shared_from_this()](std::exception_ptr failure) {
        // Only a failure to allocate gets here: nothing could serve on, so the process is not kept alive.
        if (failure) std::rethrow_exception(failure);
    };
    asio::co_spawn(acceptor_.get_executor(), accept_forever(), std::move(on_end));
}

boost::asio::awaitable<void> listener::accept_forever() {
    asio::steady_timer pause(acceptor_.get_executor());
    while (acceptor_.is_open()) {
        boost::system::error_code fault;
        tcp::socket socket = co_await acceptor_.async_accept(asio::redirect_error(asio::use_awaitable, fault));
        if (!fault) {
            admit(std::move(socket));
            continue;
        }
        if (!acceptor_.is_open()) break;
        report(fault);
        boost::system::error_code ignored;
        pause.expires_after(limits::accept_backoff);
        co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
}

std::size_t listener::accept_backlog() {
    std::size_t accepted = 0;
    while (acceptor_.is_open()) {
        boost::system::error_code fault;
        tcp::socket socket(acceptor_.get_executor());
        acceptor_.accept(socket, fault);
        if (fault) break;
        admit(std::move(socket));
        ++accepted;
    }
    return accepted;
}

void listener::admit(tcp::socket socket) {
    boost::system::error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    sessions_->open(connection(std::move(socket)));
}

void listener::report(boost::system::error_code fault) {
    const auto now = std::chrono::steady_clock::now();
    if (now - reported_ < limits::accept_log_interval) return;
    reported_ = now;
    const std::string cause = fault.message();
    journal_.write(domain::log_level::warning, "accept_failed", {{"cause", std::string_view(cause)}});
}

void listener::close() {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
}

}  // namespace holdfast::http
