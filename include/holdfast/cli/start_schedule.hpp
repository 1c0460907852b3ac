#ifndef HOLDFAST_CLI_START_SCHEDULE_HPP
#define HOLDFAST_CLI_START_SCHEDULE_HPP

#include <chrono>
#include <cstdint>

namespace holdfast::cli {

/// When the starts of an open loop are due: `per_second` of them in each second from `begin` on, evenly spread. The
/// moments depend on nothing but these two, least of all on how long anything took.
class start_schedule {
public:
    using clock = std::chrono::steady_clock;

    /// `per_second` is 1 to 1'000'000'000.
    start_schedule(clock::time_point begin, std::int64_t per_second) : begin_(begin), per_second_(per_second) {}

    /// The moment of the next start that nobody has taken yet.
    clock::time_point take() { return due(taken_++); }

    /// How many starts are due in [from, until), taken or not.
    std::int64_t due_within(clock::time_point from, clock::time_point until) const {
        return from < until ? due_before(until) - due_before(from) : 0;
    }

private:
    static_assert(clock::period::den == 1'000'000'000, "the schedule counts nanoseconds");
    static constexpr std::int64_t second = 1'000'000'000;

    // Whole seconds apart from the rest: a product of nanoseconds and a rate would overflow within hours.
    clock::time_point due(std::int64_t number) const {
        const std::int64_t rest = number % per_second_;
        return begin_ + std::chrono::seconds(number / per_second_) +
               std::chrono::nanoseconds(rest * second / per_second_);
    }

    std::int64_t due_before(clock::time_point moment) const {
        const std::int64_t elapsed = (moment - begin_).count();
        if (elapsed <= 0) return 0;
        const std::int64_t rest = elapsed % second;
        return elapsed / second * per_second_ + (rest * per_second_ + second - 1) / second;
    }

    clock::time_point begin_;
    std::int64_t per_second_;
    std::int64_t taken_ = 0;
};

}  // namespace holdfast::cli

#endif
