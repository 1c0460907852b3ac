#include "support/told_queue.hpp"

#include <algorithm>
#include <stdexcept>

namespace holdfast::test {

using namespace domain;
using namespace std::chrono_literals;

namespace {

constexpr node_id this_node{1};
constexpr std::chrono::milliseconds lease_before{3'600'000};

}  // namespace

std::vector<std::int64_t> told_queue::offer(std::string_view resource) {
    const std::lock_guard guard(mutex_);
    for (entry& each : places_) {
        if (each.place.resource().text() != resource || each.kept) continue;
        each.offered = true;
        return {each.place.number()};
    }
    return {};
}

std::size_t told_queue::living() const {
    const std::lock_guard guard(mutex_);
    return static_cast<std::size_t>(
        std::count_if(places_.begin(), places_.end(), [](const entry& each) { return !each.kept; }));
}

boost::system::error_code told_queue::meet_fault() const {
    const int kind = fault;
    if (kind < 0) throw std::runtime_error("a secret of the queue");
    return kind == 0 ? boost::system::error_code() : static_cast<errc>(kind);
}

told_queue::entry* told_queue::find(const place& place) {
    const auto found =
        std::find_if(places_.begin(), places_.end(), [&](const entry& each) { return each.place == place; });
    return found == places_.end() ? nullptr : &*found;
}

std::size_t told_queue::position_of(const place& place) const {
    std::size_t position = 0;
    for (const entry& each : places_)
        if (each.place.resource() == place.resource() && each.place.number() <= place.number()) ++position;
    return position;
}

told_queue::answer<stand_outcome> told_queue::stand(stand_command command, store::deadline) {
    if (const auto failed = meet_fault()) co_return failed;
    const std::lock_guard guard(mutex_);
    if (!command.node()) co_return stand_outcome{queue_refusal(lease_before), {}};
    const std::int64_t attachment = ++last_number_;
    std::vector<domain::wake> wakes;
    for (entry& each : places_) {
        if (each.place.resource() != command.resource() || each.owner != command.ask().owner()) continue;
        if (!each.kept) wakes.push_back({this_node, each.place.number()});
        each.place = place(command.resource(), each.place.number(), attachment);
        each.kept = false;
        co_return stand_outcome{queue_standing(each.place, position_of(each.place), lease_before), std::move(wakes)};
    }
    if (places_.size() >= places_max) co_return stand_outcome{domain::queue_full(), {}};
    place taken(command.resource(), ++last_number_, attachment);
    places_.push_back({taken, command.ask().owner()});
    co_return stand_outcome{queue_standing(taken, position_of(taken), lease_before), {}};
}

told_queue::answer<claim_outcome> told_queue::claim(claim_command command, store::deadline) {
    const std::lock_guard guard(mutex_);
    entry* const found = find(command.place());
    if (!found) co_return place_gone();
    if (!found->offered) co_return not_offered(lease_before);
    places_.erase(places_.begin() + (found - places_.data()));
    ++granted_;
    const auto length = command.ask().ttl().length();
    const timestamp now = now_();
    co_return queue_grant(lock(command.resource(), command.ask().owner(), now, now + length,
                               std::chrono::duration_cast<std::chrono::milliseconds>(length),
                               *fencing_token::parse(++last_token_)));
}

told_queue::answer<withdraw_outcome> told_queue::withdraw(withdraw_command command, store::deadline) {
    const std::lock_guard guard(mutex_);
    entry* const found = find(command.place());
    if (!found) co_return withdraw_outcome{place_gone(), {}};
    found->kept = true;
    found->offered = false;
    ++withdrawn_;
    co_return withdraw_outcome{place_kept(position_of(found->place), lease_before), {}};
}

told_queue::answer<leave_outcome> told_queue::leave(leave_command command, store::deadline) {
    if (const auto failed = meet_fault()) co_return failed;
    const std::lock_guard guard(mutex_);
    const auto found = std::find_if(places_.begin(), places_.end(), [&](const entry& each) {
        return each.place.resource() == command.resource() && each.owner == command.owner();
    });
    leave_outcome outcome;
    if (found == places_.end()) co_return outcome;
    outcome.result = leave_result::left;
    if (!found->kept) outcome.wakes.push_back({this_node, found->place.number()});
    places_.erase(found);
    co_return outcome;
}

told_queue::answer<hand_over_outcome> told_queue::hand_over(hand_over_command, store::deadline) {
    hand_over_outcome outcome;
    outcome.ends_in = lease_before;
    co_return outcome;
}

told_queue::answer<queue_release_outcome> told_queue::release(queue_release_command command, store::deadline) {
    queue_release_outcome outcome;
    outcome.result = release_result::released;
    ++(command.given_back() ? given_back_ : released_);
    co_return outcome;
}

std::optional<node_id> told_queue::node() const noexcept {
    return has_node ? std::optional(this_node) : std::nullopt;
}

}  // namespace holdfast::test
