#include "holdfast/service/errands.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <utility>

namespace holdfast::service {

namespace asio = boost::asio;

errands::errands(asio::any_io_executor executor, std::size_t at_once_max)
    : executor_(std::move(executor)), at_once_max_(at_once_max), idle_(executor_) {}

void errands::run(errand errand, bool prompt) {
    (prompt ? prompt_ : patient_).push_back(std::move(errand));
    begin_soon();
}

/// Whoever calls run() is in the middle of something; and what many events ask for goes out together.
void errands::begin_soon() {
    if (begins_soon_ || under_way_ >= at_once_max_ || (prompt_.empty() && patient_.empty())) return;
    begins_soon_ = true;
    asio::post(executor_, [self = shared_from_this()] {
        self->begins_soon_ = false;
        self->begin();
    });
}

void errands::begin() {
    while (under_way_ < at_once_max_ && !(prompt_.empty() && patient_.empty())) {
        auto& next = prompt_.empty() ? patient_ : prompt_;
        errand errand = std::move(next.front());
        next.pop_front();
        spawn(std::move(errand));
    }
}

void errands::spawn(errand errand) {
    ++under_way_;
    asio::co_spawn(executor_, errand(), [self = shared_from_this()](std::exception_ptr fault) {
        self->ended();
        if (fault) std::rethrow_exception(fault);
    });
}

void errands::ended() {
    --under_way_;
    if (idle()) idle_.cancel();
    begin_soon();
}

asio::awaitable<void> errands::settle(std::shared_ptr<errands> self, std::chrono::milliseconds limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (!self->idle() && std::chrono::steady_clock::now() < until) {
        boost::system::error_code became_idle;
        self->idle_.expires_at(until);
        co_await self->idle_.async_wait(asio::redirect_error(asio::use_awaitable, became_idle));
    }
}

void errands::clear() noexcept {
    prompt_.clear();
    patient_.clear();
}

}  // namespace holdfast::service
