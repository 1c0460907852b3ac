#ifndef HOLDFAST_PG_DATABASE_CLOCK_HPP
#define HOLDFAST_PG_DATABASE_CLOCK_HPP

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>

namespace holdfast::pg {

/// What the database's clock shows at a moment of this process's monotonic clock, as far as readings tell. Used only
/// for the `not_after` of writes, never to judge a lease. Errs towards early, so that a late write is refused. Any
/// thread.
class database_clock {
public:
    using steady_time = std::chrono::steady_clock::time_point;

    /// The database read `clock_us` (microseconds since the epoch) at some moment between `sent` and `received`.
    void read(std::int64_t clock_us, steady_time sent, steady_time received);

    /// The database's time at `moment`; nothing before the first reading.
    std::optional<std::int64_t> at(steady_time moment) const;

private:
    mutable std::mutex mutex_;
    std::optional<std::int64_t> offset_us_;  ///< Database time minus monotonic time; a lower bound.
};

}  // namespace holdfast::pg

#endif
