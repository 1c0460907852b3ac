#ifndef HOLDFAST_STORE_LEASE_STORE_HPP
#define HOLDFAST_STORE_LEASE_STORE_HPP

#include "holdfast/domain/commands.hpp"
#include "holdfast/domain/errc.hpp"
#include "holdfast/domain/outcomes.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>

namespace holdfast::store {

/// A moment on this process's monotonic clock. The database's clock never meets it.
using deadline = std::chrono::steady_clock::time_point;

/// Where leases live. Every call is one command, answered with its true outcome or an errc, at the latest shortly after
/// `deadline`:
///   unavailable, overloaded, internal   certainly no effect
///   outcome_unknown                     sent and not answered (never from look)
/// Called and resumed on the I/O thread. Terminal and total cancellation of the awaiting coroutine ends a command that
/// was not sent yet without effect; one that was sent runs on and its outcome is discarded. Nothing throws but
/// `boost::system::system_error` with `operation_aborted` after cancellation.
class lease_store {
public:
    virtual ~lease_store() = default;

    virtual boost::asio::awaitable<domain::result<domain::acquire_outcome>> acquire(domain::acquire_command command,
                                                                                    deadline deadline) = 0;
    virtual boost::asio::awaitable<domain::result<domain::renew_outcome>> renew(domain::renew_command command,
                                                                                deadline deadline) = 0;
    virtual boost::asio::awaitable<domain::result<domain::release_result>> release(domain::release_command command,
                                                                                   deadline deadline) = 0;
    virtual boost::asio::awaitable<domain::result<domain::look_outcome>> look(domain::look_command command,
                                                                              deadline deadline) = 0;
};

}  // namespace holdfast::store

#endif
