#include "holdfast/service/lease_service.hpp"

#include <boost/asio/awaitable.hpp>

#include <utility>
#include <variant>

namespace holdfast::service {

using namespace domain;
using boost::asio::awaitable;
using namespace std::chrono_literals;

namespace {

/// What the queue answers to one that does not wait.
struct answer_at_once {
    result<acquire_answer> operator()(queue_grant& granted) const {
        return acquire_answer(grant(std::move(granted.lock)));
    }
    result<acquire_answer> operator()(const queue_refusal& refused) const {
        return acquire_answer(refusal(refused.retry_after));
    }
    result<acquire_answer> operator()(domain::queue_full) const { return acquire_answer(service::queue_full()); }
    /// A place for a request that did not ask for one.
    result<acquire_answer> operator()(const queue_standing&) const { return errc::internal; }
};

}  // namespace

/// Nearly every request ends at the first question; the rest is in coroutines of its own, which others need not pay
/// for.
awaitable<result<acquire_answer>> lease_service::acquire(acquire_command command, std::chrono::seconds wait,
                                                         service::asker* asker) {
    const auto arrived = std::chrono::steady_clock::now();
    if (wait > 0s && registry_.awaited_here(command.resource()))
        co_return co_await stand_in_line(std::move(command), wait, arrived, asker);
    if (wait > 0s) command.make_returnable();
    auto outcome = co_await store_.acquire(command, arrived + request_deadline_);
    if (!outcome) co_return outcome.error();
    switch (outcome->result()) {
        case acquire_result::granted: {
            if (outcome->is_awaited()) queue_.announce_moved(command.resource());
            grant granted(std::move(*outcome).grant());
            if (wait > 0s) {
                granted.waited = 0ms;
                granted.undelivered = registry_.way_back(granted.lock);
            }
            co_return acquire_answer(std::move(granted));
        }
        case acquire_result::held:
            if (wait == 0s) co_return acquire_answer(refusal(outcome->retry_after()));
            break;
        case acquire_result::awaited:
            if (wait == 0s) co_return co_await ask_queue(std::move(command), arrived + request_deadline_);
            break;
    }
    co_return co_await stand_in_line(std::move(command), wait, arrived, asker);
}

awaitable<result<acquire_answer>> lease_service::stand_in_line(acquire_command command, std::chrono::seconds wait,
                                                               std::chrono::steady_clock::time_point arrived,
                                                               service::asker* asker) {
    if (asker) co_await asker->stands_in_line();
    co_return co_await registry_.wait(std::move(command), wait, arrived);
}

awaitable<result<acquire_answer>> lease_service::ask_queue(acquire_command command, store::deadline deadline) {
    stand_command ask(std::move(command), std::nullopt);
    auto outcome = co_await queue_.stand(std::move(ask), deadline);
    if (!outcome) co_return outcome.error();
    registry_.spread(std::move(outcome->wakes));
    co_return std::visit(answer_at_once(), outcome->answer);
}

awaitable<result<renew_outcome>> lease_service::renew(renew_command command) {
    auto outcome = co_await store_.renew(std::move(command), deadline_from_now());
    if (outcome && outcome->result() == renew_result::renewed && outcome->is_awaited())
        queue_.announce_moved(outcome->lock().resource());
    co_return outcome;
}

awaitable<result<release_result>> lease_service::release(release_command command) {
    const auto deadline = deadline_from_now();
    if (registry_.awaited_here(command.resource())) co_return co_await release_awaited(std::move(command), deadline);
    const auto outcome = co_await store_.release(command, deadline);
    if (!outcome || *outcome != release_result::awaited) co_return outcome;
    co_return co_await release_awaited(std::move(command), deadline);
}

awaitable<result<release_result>> lease_service::release_awaited(release_command command, store::deadline deadline) {
    queue_release_command release(std::move(command), false, registry_.hands_over_at());
    const auto sent = std::chrono::steady_clock::now();
    auto outcome = co_await queue_.release(std::move(release), deadline);
    if (!outcome) co_return outcome.error();
    if (outcome->handed) registry_.deliver(std::move(*outcome->handed), sent);
    registry_.spread(std::move(outcome->wakes));
    co_return outcome->result;
}

awaitable<result<look_outcome>> lease_service::look(look_command command) {
    return store_.look(std::move(command), deadline_from_now());
}

awaitable<result<leave_result>> lease_service::leave(leave_command command) {
    auto outcome = co_await queue_.leave(std::move(command), deadline_from_now());
    if (!outcome) co_return outcome.error();
    registry_.spread(std::move(outcome->wakes));
    co_return outcome->result;
}

}  // namespace holdfast::service
