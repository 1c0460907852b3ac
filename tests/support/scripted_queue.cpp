#include "support/scripted_queue.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <stdexcept>

namespace holdfast::tests {

using namespace domain;

namespace {

std::optional<errc> take_first(std::deque<errc>& failures) {
    if (failures.empty()) return std::nullopt;
    const errc first = failures.front();
    failures.pop_front();
    return first;
}

}  // namespace

void scripted_queue::let_go() {
    for (script& each : scripts_)
        each.stops_before = each.stops_after = false;
    gate_.cancel();
}

boost::asio::awaitable<void> scripted_queue::stop() {
    boost::system::error_code let_go;
    co_await gate_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, let_go));
}

/// A call does not begin before it is awaited.
template <class Outcome>
scripted_queue::answer<Outcome> scripted_queue::carry(queue_call kind, answer<Outcome> call) {
    script& script = of(kind);
    ++script.sent;
    script.most_under_way = std::max(script.most_under_way, ++script.under_way);
    if (script.throws) throw std::runtime_error("a secret of the queue");
    const auto fails = take_first(script.fails);
    if (script.stops_before) co_await stop();
    if (fails) {
        --script.under_way;
        co_return *fails;
    }
    auto outcome = co_await std::move(call);
    const auto lost = take_first(script.answer_is_lost);
    if (script.stops_after) co_await stop();
    --script.under_way;
    if (lost) co_return *lost;
    co_return outcome;
}

scripted_queue::answer<stand_outcome> scripted_queue::stand(stand_command command, store::deadline deadline) {
    return carry(queue_call::stand, other_.stand(std::move(command), deadline));
}

scripted_queue::answer<claim_outcome> scripted_queue::claim(claim_command command, store::deadline deadline) {
    return carry(queue_call::claim, other_.claim(std::move(command), deadline));
}

scripted_queue::answer<withdraw_outcome> scripted_queue::withdraw(withdraw_command command, store::deadline deadline) {
    return carry(queue_call::withdraw, other_.withdraw(std::move(command), deadline));
}

scripted_queue::answer<leave_outcome> scripted_queue::leave(leave_command command, store::deadline deadline) {
    return carry(queue_call::leave, other_.leave(std::move(command), deadline));
}

scripted_queue::answer<hand_over_outcome> scripted_queue::hand_over(hand_over_command command,
                                                                    store::deadline deadline) {
    return carry(queue_call::hand_over, other_.hand_over(std::move(command), deadline));
}

scripted_queue::answer<queue_release_outcome> scripted_queue::release(queue_release_command command,
                                                                      store::deadline deadline) {
    return carry(queue_call::release, other_.release(std::move(command), deadline));
}

}  // namespace holdfast::tests
