#ifndef HOLDFAST_PG_THREADED_QUEUE_HPP
#define HOLDFAST_PG_THREADED_QUEUE_HPP

#include "holdfast/pg/connection_threads.hpp"
#include "holdfast/store/wait_queue.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace holdfast::pg {

/// The waiting lines on connection threads. What is heard about them is handed in by the heartbeat and the listener
/// through woken() and surveyed(). I/O thread only.
class threaded_queue final : public store::wait_queue {
public:
    /// Who this node is, now.
    using node_source = std::function<std::optional<domain::node_id>()>;

    /// `threads` must outlive the queue.
    threaded_queue(connection_threads& threads, node_source node) : threads_(threads), node_(std::move(node)) {}

    boost::asio::awaitable<domain::result<domain::stand_outcome>> stand(domain::stand_command command,
                                                                        store::deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::claim_outcome>> claim(domain::claim_command command,
                                                                        store::deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::withdraw_outcome>> withdraw(domain::withdraw_command command,
                                                                              store::deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::leave_outcome>> leave(domain::leave_command command,
                                                                        store::deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::hand_over_outcome>> hand_over(domain::hand_over_command command,
                                                                                store::deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::queue_release_outcome>> release(domain::queue_release_command command,
                                                                                  store::deadline deadline) override;

    void announce(std::vector<domain::wake> wakes) override;
    void announce_moved(domain::resource_name resource) override;
    void listen(events events) override { events_ = std::move(events); }
    std::optional<domain::node_id> node() const noexcept override { return node_(); }

    /// These places of this node should be looked at again.
    void woken(std::vector<std::int64_t> place_numbers);
    void surveyed(std::vector<domain::surveyed_place> places, std::chrono::steady_clock::time_point began);

private:
    void announce_next();

    connection_threads& threads_;
    node_source node_;
    events events_;
    std::vector<domain::wake> wakes_;           ///< Not announced yet.
    std::vector<domain::resource_name> moved_;  ///< Not announced yet.
    bool announcing_ = false;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  ///< An announcement may end after the queue.
};

}  // namespace holdfast::pg

#endif
