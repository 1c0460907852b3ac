#ifndef HOLDFAST_SERVICE_ERRANDS_HPP
#define HOLDFAST_SERVICE_ERRANDS_HPP

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>

namespace holdfast::service {

/// What a node does of its own accord, at most so much of it at a time: thousands of waiters may be concerned at once,
/// and everybody else's commands share the store's bounded queue with theirs. I/O thread only; held by a shared_ptr,
/// which the errands under way share.
class errands : public std::enable_shared_from_this<errands> {
public:
    /// Returns a coroutine that owns its parameters. What it throws leaves the executor's run().
    using errand = std::function<boost::asio::awaitable<void>()>;

    errands(boost::asio::any_io_executor executor, std::size_t at_once_max);

    /// Begins it soon, never inside this call; a prompt one before all that are not.
    void run(errand errand, bool prompt);

    /// None waits or is under way.
    bool idle() const noexcept { return under_way_ == 0 && prompt_.empty() && patient_.empty(); }
    /// Completes when idle, or after `limit`.
    static boost::asio::awaitable<void> settle(std::shared_ptr<errands> self, std::chrono::milliseconds limit);
    /// Forgets those that wait.
    void clear() noexcept;

private:
    void begin_soon();
    void begin();
    void spawn(errand errand);
    void ended();

    boost::asio::any_io_executor executor_;
    std::size_t at_once_max_;
    std::size_t under_way_ = 0;
    std::deque<errand> prompt_;
    std::deque<errand> patient_;
    boost::asio::steady_timer idle_;  ///< Never expires by itself but at the limit of settle(); cancelled when idle.
    bool begins_soon_ = false;
};

}  // namespace holdfast::service

#endif
