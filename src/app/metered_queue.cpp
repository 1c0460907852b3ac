#include "holdfast/app/metered_queue.hpp"

#include <utility>
#include <variant>

namespace holdfast::app {
namespace {

struct stand_events {
    queue_event operator()(const domain::queue_grant&) const { return queue_event::stand_granted; }
    queue_event operator()(const domain::queue_standing&) const { return queue_event::stand_standing; }
    queue_event operator()(const domain::queue_refusal&) const { return queue_event::stand_refused; }
    queue_event operator()(const domain::queue_full&) const { return queue_event::stand_full; }
};

struct claim_events {
    queue_event operator()(const domain::queue_grant&) const { return queue_event::claim_granted; }
    queue_event operator()(const domain::not_offered&) const { return queue_event::claim_not_offered; }
    queue_event operator()(const domain::place_gone&) const { return queue_event::claim_gone; }
};

struct withdraw_events {
    queue_event operator()(const domain::place_kept&) const { return queue_event::withdraw_kept; }
    queue_event operator()(const domain::place_gone&) const { return queue_event::withdraw_gone; }
};

queue_event event_of(const domain::hand_over_outcome& outcome) {
    if (outcome.handed || !outcome.wakes.empty()) return queue_event::hand_over_offered;
    return outcome.ends_in ? queue_event::hand_over_early : queue_event::hand_over_free;
}

queue_event release_event(domain::release_result result) {
    switch (result) {
        case domain::release_result::released:
            return queue_event::release_released;
        case domain::release_result::not_found:
            return queue_event::release_not_found;
        case domain::release_result::forbidden:
            return queue_event::release_forbidden;
        case domain::release_result::awaited:
            break;
    }
    return queue_event::release_failed;
}

queue_event give_back_event(domain::release_result result) {
    return result == domain::release_result::released ? queue_event::give_back_released : queue_event::give_back_late;
}

}  // namespace

metered_queue::answer<domain::stand_outcome> metered_queue::stand(domain::stand_command command,
                                                                  store::deadline deadline) {
    auto outcome = co_await queue_.stand(std::move(command), deadline);
    meter_.queue_answered(outcome ? std::visit(stand_events(), outcome->answer) : queue_event::stand_failed);
    co_return outcome;
}

metered_queue::answer<domain::claim_outcome> metered_queue::claim(domain::claim_command command,
                                                                  store::deadline deadline) {
    auto outcome = co_await queue_.claim(std::move(command), deadline);
    meter_.queue_answered(outcome ? std::visit(claim_events(), *outcome) : queue_event::claim_failed);
    co_return outcome;
}

metered_queue::answer<domain::withdraw_outcome> metered_queue::withdraw(domain::withdraw_command command,
                                                                        store::deadline deadline) {
    auto outcome = co_await queue_.withdraw(std::move(command), deadline);
    meter_.queue_answered(outcome ? std::visit(withdraw_events(), outcome->answer) : queue_event::withdraw_failed);
    co_return outcome;
}

metered_queue::answer<domain::leave_outcome> metered_queue::leave(domain::leave_command command,
                                                                  store::deadline deadline) {
    auto outcome = co_await queue_.leave(std::move(command), deadline);
    if (!outcome)
        meter_.queue_answered(queue_event::leave_failed);
    else if (outcome->result == domain::leave_result::left)
        meter_.queue_answered(queue_event::leave_left);
    else
        meter_.queue_answered(queue_event::leave_not_found);
    co_return outcome;
}

metered_queue::answer<domain::hand_over_outcome> metered_queue::hand_over(domain::hand_over_command command,
                                                                          store::deadline deadline) {
    const auto asked = std::chrono::steady_clock::now();
    auto outcome = co_await queue_.hand_over(std::move(command), deadline);
    const queue_event event = outcome ? event_of(*outcome) : queue_event::hand_over_failed;
    meter_.queue_answered(event);
    if (event == queue_event::hand_over_offered) meter_.handed_over_after(std::chrono::steady_clock::now() - asked);
    co_return outcome;
}

metered_queue::answer<domain::queue_release_outcome> metered_queue::release(domain::queue_release_command command,
                                                                            store::deadline deadline) {
    const bool given_back = command.given_back();
    auto outcome = co_await queue_.release(std::move(command), deadline);
    if (given_back)
        meter_.queue_answered(outcome ? give_back_event(outcome->result) : queue_event::give_back_failed);
    else
        meter_.queue_answered(outcome ? release_event(outcome->result) : queue_event::release_failed);
    co_return outcome;
}

void metered_queue::announce(std::vector<domain::wake> wakes) {
    queue_.announce(std::move(wakes));
}

void metered_queue::announce_moved(domain::resource_name resource) {
    queue_.announce_moved(std::move(resource));
}

void metered_queue::listen(events events) {
    events.woken = [this, woken = std::move(events.woken)](std::vector<std::int64_t> place_numbers) {
        meter_.notified(place_numbers.size());
        woken(std::move(place_numbers));
    };
    queue_.listen(std::move(events));
}

std::optional<domain::node_id> metered_queue::node() const noexcept {
    return queue_.node();
}

}  // namespace holdfast::app
