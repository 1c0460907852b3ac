#ifndef HOLDFAST_SERVICE_LEASE_SERVICE_HPP
#define HOLDFAST_SERVICE_LEASE_SERVICE_HPP

#include "holdfast/store/lease_store.hpp"

#include <chrono>

namespace holdfast::service {

/// The use cases: gives each command its deadline. It repeats nothing: a sent command whose answer was lost is reported
/// as `outcome_unknown` and the client, who has the key, decides (contract, section 5). I/O thread only.
class lease_service {
public:
    /// `store` must outlive the service. Every call is answered within `request_deadline`, counted from the call.
    lease_service(store::lease_store& store, std::chrono::milliseconds request_deadline)
        : store_(store), request_deadline_(request_deadline) {}

    boost::asio::awaitable<domain::result<domain::acquire_outcome>> acquire(domain::acquire_command command);
    boost::asio::awaitable<domain::result<domain::renew_outcome>> renew(domain::renew_command command);
    boost::asio::awaitable<domain::result<domain::release_result>> release(domain::release_command command);
    boost::asio::awaitable<domain::result<domain::look_outcome>> look(domain::look_command command);

private:
    store::deadline deadline_from_now() const { return std::chrono::steady_clock::now() + request_deadline_; }

    store::lease_store& store_;
    std::chrono::milliseconds request_deadline_;
};

}  // namespace holdfast::service

#endif
