#ifndef HOLDFAST_SERVICE_WAIT_REGISTRY_HPP
#define HOLDFAST_SERVICE_WAIT_REGISTRY_HPP

#include "holdfast/service/acquire_answer.hpp"
#include "holdfast/service/alarm.hpp"
#include "holdfast/store/wait_queue.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace holdfast::service {

/// The requests that wait on this node: who is connected here, at which place, and when the lease before it ends. Wakes
/// them when they are offered the lock, sets handovers off when a lease ends, and takes care of those whose client has
/// gone. I/O thread only.
class wait_registry {
public:
    /// `queue` must outlive the registry, and has not started yet. Everything is answered within `request_deadline` of
    /// the end of its wait.
    wait_registry(boost::asio::any_io_executor executor, store::wait_queue& queue, std::size_t waiters_max,
                  std::chrono::milliseconds request_deadline);
    /// The same by another clock.
    wait_registry(boost::asio::any_io_executor executor, store::wait_queue& queue, std::size_t waiters_max,
                  std::chrono::milliseconds request_deadline, std::unique_ptr<service::alarm> alarm);
    /// Who still waits is answered `unavailable`.
    ~wait_registry();

    wait_registry(const wait_registry&) = delete;
    wait_registry& operator=(const wait_registry&) = delete;

    /// As lease_service::acquire, for a lock that others hold or wait for. `overloaded` beyond `waiters_max`,
    /// `unavailable` while the queue has no node id or the node drains; `outcome_unknown` where the lock may have been
    /// granted. When the time is up and the queue cannot say where the request stands, the errc says why: nothing was
    /// granted. `arrived` is when the request did.
    boost::asio::awaitable<domain::result<acquire_answer>> wait(domain::acquire_command command,
                                                                std::chrono::seconds wait,
                                                                std::chrono::steady_clock::time_point arrived);

    /// Answers every waiter `unavailable`, refuses new ones the same way, keeps their places.
    void drain();
    /// Completes when no command of the registry's own (withdrawals, gifts back) is under way; or after `limit`.
    boost::asio::awaitable<void> settle(std::chrono::milliseconds limit);

    /// Wakes for this node are acted on, those for others are announced.
    void spread(std::vector<domain::wake> wakes);
    /// A waiter of this node was granted the lock by a command that was sent at `sent`: its client is answered. Where
    /// nobody waits for that any more, the lock is given back.
    void deliver(domain::handover handed, std::chrono::steady_clock::time_point sent);
    /// This node, if locks may be handed to its waiters at once: those who are gone, or are about to be sent elsewhere,
    /// are withdrawn.
    std::optional<domain::node_id> hands_over_at() const;

    /// Gives a returnable grant back, if nobody else has been answered with it since: for grant::undelivered.
    std::function<void()> way_back(const domain::lock& lock);

    /// Whether somebody waits for `resource` here: then its row is awaited, most likely, and the queue may be asked at
    /// once.
    bool awaited_here(const domain::resource_name& resource) const;

    /// Requests that wait now.
    std::size_t waiting() const noexcept;

private:
    class core;
    std::shared_ptr<core> core_;
};

}  // namespace holdfast::service

#endif
