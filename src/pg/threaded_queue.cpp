#include "holdfast/pg/threaded_queue.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <tuple>

namespace holdfast::pg {

using namespace domain;

namespace {

/// An announcement that could not be sent by then is forgotten: the survey has told by then what it would have told.
constexpr std::chrono::seconds announcement_limit{1};

template <class Outcome, class Command>
boost::asio::awaitable<result<Outcome>> carry_out(connection_threads& threads, Command what, store::deadline deadline) {
    command whole(std::in_place_type<queue_command>, std::move(what));
    answer reply = co_await threads.async_run(std::move(whole), deadline, boost::asio::use_awaitable);
    if (!reply) co_return reply.error();
    co_return std::get<Outcome>(std::get<queue_outcome>(std::move(*reply)));
}

}  // namespace

boost::asio::awaitable<result<stand_outcome>> threaded_queue::stand(stand_command command, store::deadline deadline) {
    return carry_out<stand_outcome>(threads_, std::move(command), deadline);
}

boost::asio::awaitable<result<claim_outcome>> threaded_queue::claim(claim_command command, store::deadline deadline) {
    return carry_out<claim_outcome>(threads_, std::move(command), deadline);
}

boost::asio::awaitable<result<withdraw_outcome>> threaded_queue::withdraw(withdraw_command command,
                                                                          store::deadline deadline) {
    return carry_out<withdraw_outcome>(threads_, std::move(command), deadline);
}

boost::asio::awaitable<result<leave_outcome>> threaded_queue::leave(leave_command command, store::deadline deadline) {
    return carry_out<leave_outcome>(threads_, std::move(command), deadline);
}

boost::asio::awaitable<result<hand_over_outcome>> threaded_queue::hand_over(hand_over_command command,
                                                                            store::deadline deadline) {
    return carry_out<hand_over_outcome>(threads_, std::move(command), deadline);
}

boost::asio::awaitable<result<queue_release_outcome>> threaded_queue::release(queue_release_command command,
                                                                              store::deadline deadline) {
    return carry_out<queue_release_outcome>(threads_, std::move(command), deadline);
}

void threaded_queue::announce(std::vector<wake> wakes) {
    if (wakes.empty()) return;
    wakes_.insert(wakes_.end(), wakes.begin(), wakes.end());
    announce_next();
}

void threaded_queue::announce_moved(resource_name resource) {
    moved_.push_back(std::move(resource));
    announce_next();
}

/// One announcement is under way at a time; what comes up meanwhile goes together with the next.
void threaded_queue::announce_next() {
    if (announcing_ || (wakes_.empty() && moved_.empty())) return;
    announcing_ = true;
    const auto one_each = [](auto& all) {
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return std::exchange(all, {});
    };
    command whole(std::in_place_type<announce_command>, one_each(wakes_), one_each(moved_));
    threads_.async_run(std::move(whole), std::chrono::steady_clock::now() + announcement_limit,
                       [this, alive = std::weak_ptr(alive_)](boost::system::error_code, const answer&) {
                           if (alive.expired()) return;
                           announcing_ = false;
                           announce_next();
                       });
}

void threaded_queue::woken(std::vector<std::int64_t> place_numbers) {
    if (events_.woken) events_.woken(std::move(place_numbers));
}

void threaded_queue::surveyed(std::vector<surveyed_place> places, std::chrono::steady_clock::time_point began) {
    if (events_.surveyed) events_.surveyed(std::move(places), began);
}

}  // namespace holdfast::pg
