#ifndef HOLDFAST_APP_METERED_QUEUE_HPP
#define HOLDFAST_APP_METERED_QUEUE_HPP

#include "holdfast/store/wait_queue.hpp"

#include <chrono>
#include <cstddef>

namespace holdfast::app {

/// A command on a queue of waiters and how it was answered. `hand_over_offered`: to somebody; `hand_over_early`: the
/// lease or an offer goes on; `hand_over_free`: nobody holds the lock and nobody waits for it. A grant is given back
/// when its answer could not be delivered, `give_back_late` if it had ended, or had been answered again, before.
enum class queue_event {
    stand_granted,
    stand_standing,
    stand_refused,
    stand_full,
    stand_failed,
    claim_granted,
    claim_not_offered,
    claim_gone,
    claim_failed,
    withdraw_kept,
    withdraw_gone,
    withdraw_failed,
    leave_left,
    leave_not_found,
    leave_failed,
    hand_over_offered,
    hand_over_early,
    hand_over_free,
    hand_over_failed,
    release_released,
    release_not_found,
    release_forbidden,
    release_failed,
    give_back_released,
    give_back_late,
    give_back_failed,
};

inline constexpr std::size_t queue_events = 26;

/// The port through which a metered_queue counts. Used on the I/O thread.
class queue_meter {
public:
    virtual void queue_answered(queue_event event) noexcept = 0;
    /// A lease was known to have ended, and so much later the lock was offered to the first who waited for it.
    virtual void handed_over_after(std::chrono::nanoseconds duration) noexcept = 0;
    /// A notification has named so many places of this node that are to be looked at again.
    virtual void notified(std::size_t places) noexcept = 0;

protected:
    ~queue_meter() = default;
};

/// Another queue, every answer of which is counted. What is cancelled is not.
class metered_queue final : public store::wait_queue {
public:
    /// Both must outlive it.
    metered_queue(store::wait_queue& queue, queue_meter& meter) : queue_(queue), meter_(meter) {}

    template <class Outcome>
    using answer = boost::asio::awaitable<domain::result<Outcome>>;

    answer<domain::stand_outcome> stand(domain::stand_command command, store::deadline deadline) override;
    answer<domain::claim_outcome> claim(domain::claim_command command, store::deadline deadline) override;
    answer<domain::withdraw_outcome> withdraw(domain::withdraw_command command, store::deadline deadline) override;
    answer<domain::leave_outcome> leave(domain::leave_command command, store::deadline deadline) override;
    answer<domain::hand_over_outcome> hand_over(domain::hand_over_command command, store::deadline deadline) override;
    answer<domain::queue_release_outcome> release(domain::queue_release_command command,
                                                  store::deadline deadline) override;
    void announce(std::vector<domain::wake> wakes) override;
    void announce_moved(domain::resource_name resource) override;
    void listen(events events) override;
    std::optional<domain::node_id> node() const noexcept override;

private:
    store::wait_queue& queue_;
    queue_meter& meter_;
};

}  // namespace holdfast::app

#endif
