#ifndef HOLDFAST_TESTS_SUPPORT_SCRIPTED_QUEUE_HPP
#define HOLDFAST_TESTS_SUPPORT_SCRIPTED_QUEUE_HPP

#include "holdfast/store/wait_queue.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast::tests {

enum class queue_call { stand, claim, withdraw, leave, hand_over, release };

/// Another queue, with what a test wants to happen on the way to it and back. I/O thread only.
class scripted_queue final : public store::wait_queue {
public:
    /// What happens to the calls of a kind.
    struct script {
        std::size_t sent = 0;       ///< How many there were, failed ones counted.
        std::size_t under_way = 0;  ///< Not answered yet.
        std::size_t most_under_way = 0;
        bool stops_before = false;                ///< Stay on the way to the other queue, until let go.
        bool stops_after = false;                 ///< Stay on the way back.
        std::deque<domain::errc> fails;           ///< The next ones fail so, without effect …
        std::deque<domain::errc> answer_is_lost;  ///< … and these after they had their effect.
        bool throws = false;
    };

    scripted_queue(boost::asio::any_io_executor executor, store::wait_queue& other)
        : other_(other), gate_(executor, boost::asio::steady_timer::time_point::max()) {}

    script& of(queue_call kind) { return scripts_[static_cast<std::size_t>(kind)]; }
    std::size_t sent(queue_call kind) { return of(kind).sent; }
    /// None stops any more, and those that did go on.
    void let_go();
    /// Says this to who listens, in the other queue's name.
    void tell_survey(std::vector<domain::surveyed_place> places, std::chrono::steady_clock::time_point began) {
        events_.surveyed(std::move(places), began);
    }

    template <class Outcome>
    using answer = boost::asio::awaitable<domain::result<Outcome>>;

    answer<domain::stand_outcome> stand(domain::stand_command command, store::deadline deadline) override;
    answer<domain::claim_outcome> claim(domain::claim_command command, store::deadline deadline) override;
    answer<domain::withdraw_outcome> withdraw(domain::withdraw_command command, store::deadline deadline) override;
    answer<domain::leave_outcome> leave(domain::leave_command command, store::deadline deadline) override;
    answer<domain::hand_over_outcome> hand_over(domain::hand_over_command command, store::deadline deadline) override;
    answer<domain::queue_release_outcome> release(domain::queue_release_command command,
                                                  store::deadline deadline) override;
    void announce(std::vector<domain::wake> wakes) override { other_.announce(std::move(wakes)); }
    void announce_moved(domain::resource_name resource) override { other_.announce_moved(std::move(resource)); }
    void listen(events events) override {
        events_ = events;
        other_.listen(std::move(events));
    }
    std::optional<domain::node_id> node() const noexcept override { return other_.node(); }

private:
    template <class Outcome>
    answer<Outcome> carry(queue_call kind, answer<Outcome> call);
    boost::asio::awaitable<void> stop();

    store::wait_queue& other_;
    events events_;
    boost::asio::steady_timer gate_;
    std::array<script, 6> scripts_;
};

}  // namespace holdfast::tests

#endif
