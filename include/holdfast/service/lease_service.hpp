#ifndef HOLDFAST_SERVICE_LEASE_SERVICE_HPP
#define HOLDFAST_SERVICE_LEASE_SERVICE_HPP

#include "holdfast/service/acquire_answer.hpp"
#include "holdfast/service/asker.hpp"
#include "holdfast/service/wait_registry.hpp"
#include "holdfast/store/lease_store.hpp"
#include "holdfast/store/wait_queue.hpp"

#include <chrono>

namespace holdfast::service {

/// The use cases: gives each command its deadline, and hands what concerns waiters to the queue. It repeats nothing: a
/// sent command whose answer was lost is reported as `outcome_unknown` and the client, who has the key, decides
/// (contract, section 5). I/O thread only.
class lease_service {
public:
    /// All must outlive the service. Every call is answered within `request_deadline`, counted from the call, or for
    /// one that waits from the end of its wait.
    lease_service(store::lease_store& store, store::wait_queue& queue, wait_registry& registry,
                  std::chrono::milliseconds request_deadline)
        : store_(store), queue_(queue), registry_(registry), request_deadline_(request_deadline) {}

    /// Stands in line for up to `wait` if the lock cannot be had now; tells `asker`, if there is one, before. From then
    /// on total or terminal cancellation of the awaiting coroutine says that the client is gone: the request is never
    /// granted, or what it was granted is given back.
    boost::asio::awaitable<domain::result<acquire_answer>> acquire(domain::acquire_command command,
                                                                   std::chrono::seconds wait,
                                                                   service::asker* asker = nullptr);
    boost::asio::awaitable<domain::result<domain::renew_outcome>> renew(domain::renew_command command);
    /// Never `awaited`.
    boost::asio::awaitable<domain::result<domain::release_result>> release(domain::release_command command);
    boost::asio::awaitable<domain::result<domain::look_outcome>> look(domain::look_command command);
    boost::asio::awaitable<domain::result<domain::leave_result>> leave(domain::leave_command command);

private:
    boost::asio::awaitable<domain::result<acquire_answer>> stand_in_line(domain::acquire_command command,
                                                                         std::chrono::seconds wait,
                                                                         std::chrono::steady_clock::time_point arrived,
                                                                         service::asker* asker);
    boost::asio::awaitable<domain::result<acquire_answer>> ask_queue(domain::acquire_command command,
                                                                     store::deadline deadline);
    boost::asio::awaitable<domain::result<domain::release_result>> release_awaited(domain::release_command command,
                                                                                   store::deadline deadline);
    store::deadline deadline_from_now() const { return std::chrono::steady_clock::now() + request_deadline_; }

    store::lease_store& store_;
    store::wait_queue& queue_;
    wait_registry& registry_;
    std::chrono::milliseconds request_deadline_;
};

}  // namespace holdfast::service

#endif
