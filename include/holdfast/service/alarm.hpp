#ifndef HOLDFAST_SERVICE_ALARM_HPP
#define HOLDFAST_SERVICE_ALARM_HPP

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <functional>
#include <memory>

namespace holdfast::service {

/// This process's monotonic clock, and one alarm on it. I/O thread only. Tests have one whose time they set.
class alarm {
public:
    using time_point = std::chrono::steady_clock::time_point;

    virtual ~alarm() = default;

    virtual time_point now() const = 0;
    /// Calls `ring` once, when `when` has come, never inside this call. Takes the place of what was set before.
    virtual void set(time_point when, std::function<void()> ring) = 0;
    /// What was set will not ring.
    virtual void stop() = 0;
};

/// The real one: std::chrono::steady_clock and a timer.
std::unique_ptr<alarm> make_alarm(const boost::asio::any_io_executor& executor);

}  // namespace holdfast::service

#endif
