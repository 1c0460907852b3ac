#ifndef HOLDFAST_HTTP_HANDLERS_HPP
#define HOLDFAST_HTTP_HANDLERS_HPP

#include "holdfast/http/metrics.hpp"
#include "holdfast/http/reply.hpp"
#include "holdfast/http/request.hpp"
#include "holdfast/http/server_settings.hpp"
#include "holdfast/http/unique_id.hpp"
#include "holdfast/service/lease_service.hpp"
#include "holdfast/service/readiness.hpp"

#include <boost/asio/awaitable.hpp>

namespace holdfast::http {

/// What each route does: decode and validate, ask the service, encode. Knows neither sockets nor Beast nor SQL.
class handlers {
public:
    /// All of them must outlive the handlers.
    handlers(const server_settings& settings, service::lease_service& service, const service::readiness& readiness,
             http::metrics& metrics, unique_ids& ids)
        : settings_(settings), service_(service), readiness_(readiness), metrics_(metrics), ids_(ids) {}

    /// Answers a request that passed answer_from_head and whose body is whole. An exception becomes a 500 with an
    /// opaque id; only cancellation (operation_aborted) comes out as one.
    boost::asio::awaitable<reply> handle(const request& request);

private:
    boost::asio::awaitable<reply> dispatch(const request& request);
    boost::asio::awaitable<reply> acquire(const request& request);
    boost::asio::awaitable<reply> carry_out(domain::acquire_command command, std::chrono::seconds wait,
                                            const request& request);
    boost::asio::awaitable<reply> look(const request& request);
    boost::asio::awaitable<reply> renew(const request& request);
    boost::asio::awaitable<reply> release(const request& request);
    boost::asio::awaitable<reply> leave(const request& request);
    reply answer_acquire(service::acquire_answer answer, const domain::resource_name& resource,
                         const request& request) const;
    reply acquire_failure(boost::system::error_code reason, bool waits, const request& request);
    reply tell_readiness(const request& request) const;
    reply failure(boost::system::error_code reason, const request& request);
    reply internal_failure(std::string cause, const request& request);

    const server_settings& settings_;
    service::lease_service& service_;
    const service::readiness& readiness_;
    http::metrics& metrics_;
    unique_ids& ids_;
};

}  // namespace holdfast::http

#endif
