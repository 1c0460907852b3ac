#include "holdfast/pg/meter.hpp"

namespace holdfast::pg {
namespace {

class blind_meter final : public meter {
public:
    void batch_run(store::command_kind, lane, std::size_t, std::chrono::nanoseconds) noexcept override {}
    void followers_answered(std::size_t) noexcept override {}
    void passed_on(std::size_t) noexcept override {}
    void slow_lane_entered(std::size_t) noexcept override {}
    void failed(failure_class) noexcept override {}
    void reconnected() noexcept override {}
    void listens_again() noexcept override {}
};

}  // namespace

meter& no_meter() noexcept {
    static blind_meter blind;
    return blind;
}

}  // namespace holdfast::pg
