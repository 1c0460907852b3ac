#ifndef HOLDFAST_STORE_MEMORY_STORE_HPP
#define HOLDFAST_STORE_MEMORY_STORE_HPP

#include "holdfast/store/lease_store.hpp"
#include "holdfast/store/wait_queue.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace holdfast::store {

/// The leases and waiting lines of one node, in memory, for unit tests: the rules of the contract without a database.
/// Passes the same conformance suites as the PostgreSQL store. Several nodes may share one memory. I/O thread only;
/// every command completes at once. Nothing happens by itself: the test says when a node hears what was announced, and
/// when it surveys its places.
class memory_store final : public lease_store, public wait_queue {
public:
    using clock = std::function<domain::timestamp()>;

    /// The first node of a memory of its own. `now` plays the part of the database's clock.
    explicit memory_store(clock now, std::size_t places_per_resource_max = 1'000);
    ~memory_store() override;

    memory_store(const memory_store&) = delete;
    memory_store& operator=(const memory_store&) = delete;

    /// One more node that shares this one's memory.
    std::unique_ptr<memory_store> another_node();

    // lease_store
    boost::asio::awaitable<domain::result<domain::acquire_outcome>> acquire(domain::acquire_command command,
                                                                            deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::renew_outcome>> renew(domain::renew_command command,
                                                                        deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::release_result>> release(domain::release_command command,
                                                                           deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::look_outcome>> look(domain::look_command command,
                                                                      deadline deadline) override;

    // wait_queue
    boost::asio::awaitable<domain::result<domain::stand_outcome>> stand(domain::stand_command command,
                                                                        deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::claim_outcome>> claim(domain::claim_command command,
                                                                        deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::withdraw_outcome>> withdraw(domain::withdraw_command command,
                                                                              deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::leave_outcome>> leave(domain::leave_command command,
                                                                        deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::hand_over_outcome>> hand_over(domain::hand_over_command command,
                                                                                deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::queue_release_outcome>> release(domain::queue_release_command command,
                                                                                  deadline deadline) override;
    void announce(std::vector<domain::wake> wakes) override;
    void announce_moved(domain::resource_name resource) override;
    void listen(events events) override { events_ = std::move(events); }
    std::optional<domain::node_id> node() const noexcept override;

    /// This node hears what was announced to it; true if that was anything.
    bool deliver();
    /// What was announced to it is lost.
    void lose_announcements();
    /// This node looks after its places. `began` is handed on.
    void survey(std::chrono::steady_clock::time_point began);
    /// Whether this node says that it lives. It does until told otherwise.
    void beats(bool does);

private:
    class memory;
    struct row;
    struct standing_place;

    explicit memory_store(std::shared_ptr<memory> memory);

    std::shared_ptr<memory> memory_;
    domain::node_id node_;
    events events_;
};

}  // namespace holdfast::store

#endif
