#ifndef HOLDFAST_TESTS_SUPPORT_TOLD_QUEUE_HPP
#define HOLDFAST_TESTS_SUPPORT_TOLD_QUEUE_HPP

#include "holdfast/store/wait_queue.hpp"

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::test {

/// A queue of waiters in memory that does as the test says: nothing is offered before the test offers it, and no lease
/// before a waiter ends. Its commands complete at once, on the I/O thread; the test may look and tell from any thread.
class told_queue final : public store::wait_queue {
public:
    using clock = std::function<domain::timestamp()>;

    explicit told_queue(clock now) : now_(std::move(now)) {}

    /// Offers the lock to the first living place; call wake() with what comes back.
    std::vector<std::int64_t> offer(std::string_view resource);
    /// What a notification does. I/O thread only.
    void wake(std::vector<std::int64_t> place_numbers) { events_.woken(std::move(place_numbers)); }

    /// Places with a request.
    std::size_t living() const;
    std::size_t withdrawn() const { return withdrawn_; }
    std::size_t granted() const { return granted_; }
    /// Out of the queue, and others.
    std::size_t given_back() const { return given_back_; }
    std::size_t released() const { return released_; }

    std::atomic<std::size_t> places_max{1'000};
    /// Questions of clients fail like this, if it is an errc; below 0: with an exception.
    std::atomic<int> fault{0};
    std::atomic<bool> has_node{true};

    template <class Outcome>
    using answer = boost::asio::awaitable<domain::result<Outcome>>;

    answer<domain::stand_outcome> stand(domain::stand_command command, store::deadline deadline) override;
    answer<domain::claim_outcome> claim(domain::claim_command command, store::deadline deadline) override;
    answer<domain::withdraw_outcome> withdraw(domain::withdraw_command command, store::deadline deadline) override;
    answer<domain::leave_outcome> leave(domain::leave_command command, store::deadline deadline) override;
    answer<domain::hand_over_outcome> hand_over(domain::hand_over_command command, store::deadline deadline) override;
    answer<domain::queue_release_outcome> release(domain::queue_release_command command,
                                                  store::deadline deadline) override;
    void announce(std::vector<domain::wake>) override {}
    void announce_moved(domain::resource_name) override {}
    void listen(events events) override { events_ = std::move(events); }
    std::optional<domain::node_id> node() const noexcept override;

private:
    struct entry {
        domain::place place;
        domain::owner_name owner;
        bool kept = false;
        bool offered = false;
    };

    boost::system::error_code meet_fault() const;
    entry* find(const domain::place& place);
    std::size_t position_of(const domain::place& place) const;

    clock now_;
    events events_;
    mutable std::mutex mutex_;
    std::vector<entry> places_;
    std::int64_t last_number_ = 0;
    std::int64_t last_token_ = 1'000;
    std::atomic<std::size_t> withdrawn_{0};
    std::atomic<std::size_t> granted_{0};
    std::atomic<std::size_t> given_back_{0};
    std::atomic<std::size_t> released_{0};
};

}  // namespace holdfast::test

#endif
