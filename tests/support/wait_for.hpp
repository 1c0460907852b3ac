#ifndef HOLDFAST_TESTS_SUPPORT_WAIT_FOR_HPP
#define HOLDFAST_TESTS_SUPPORT_WAIT_FOR_HPP

#include "holdfast/domain/errc.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <exception>
#include <optional>
#include <utility>

namespace holdfast::tests {

template <class Outcome>
boost::asio::awaitable<void> keep_answer(boost::asio::awaitable<domain::result<Outcome>> call,
                                         std::optional<domain::result<Outcome>>& answer) {
    answer.emplace(co_await std::move(call));
}

/// Runs the context until the call has ended.
template <class Outcome>
domain::result<Outcome> wait_for(boost::asio::io_context& context,
                                 boost::asio::awaitable<domain::result<Outcome>> call) {
    std::optional<domain::result<Outcome>> answer;
    std::exception_ptr thrown;
    bool ended = false;
    boost::asio::co_spawn(context, keep_answer(std::move(call), answer), [&](std::exception_ptr failure) {
        thrown = failure;
        ended = true;
    });
    context.restart();
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!ended && std::chrono::steady_clock::now() < limit) {
        context.run_one_for(std::chrono::milliseconds(100));
        if (context.stopped()) context.restart();
    }
    if (!ended) std::terminate();  // The coroutine refers to this frame: there is no way to go on.
    if (thrown) std::rethrow_exception(thrown);
    return *std::move(answer);
}

}  // namespace holdfast::tests

#endif
