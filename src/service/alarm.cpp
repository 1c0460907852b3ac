#include "holdfast/service/alarm.hpp"

#include <boost/asio/steady_timer.hpp>

#include <utility>

namespace holdfast::service {
namespace {

class steady_alarm final : public alarm {
public:
    explicit steady_alarm(const boost::asio::any_io_executor& executor) : timer_(executor) {}

    time_point now() const override { return std::chrono::steady_clock::now(); }

    void set(time_point when, std::function<void()> ring) override {
        timer_.expires_at(when);
        // A wait that ended just before it was cancelled is on its way with success: the count tells it from the
        // newest.
        const auto mine = ++last_;
        timer_.async_wait([this, mine, ring = std::move(ring), alive = std::weak_ptr(alive_)](auto aborted) {
            if (!aborted && !alive.expired() && mine == last_) ring();
        });
    }

    void stop() override {
        ++last_;
        timer_.cancel();
    }

private:
    boost::asio::steady_timer timer_;
    std::uint64_t last_ = 0;
    std::shared_ptr<int> alive_ = std::make_shared<int>(0);
};

}  // namespace

std::unique_ptr<alarm> make_alarm(const boost::asio::any_io_executor& executor) {
    return std::make_unique<steady_alarm>(executor);
}

}  // namespace holdfast::service
