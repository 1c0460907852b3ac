#include "holdfast/pg/database_clock.hpp"

namespace holdfast::pg {
namespace {

std::int64_t microseconds(database_clock::steady_time moment) {
    return std::chrono::duration_cast<std::chrono::microseconds>(moment.time_since_epoch()).count();
}

}  // namespace

void database_clock::read(std::int64_t clock_us, steady_time sent, steady_time received) {
    const std::int64_t least = clock_us - microseconds(received);
    const std::int64_t most = clock_us - microseconds(sent);
    const std::scoped_lock lock(mutex_);
    // A known offset between the bounds agrees with this reading and may be the better one (from a quicker round trip);
    // outside of them it is wrong: the clock was stepped, or drifted.
    if (!offset_us_ || *offset_us_ < least || *offset_us_ > most) offset_us_ = least;
}

std::optional<std::int64_t> database_clock::at(steady_time moment) const {
    const std::scoped_lock lock(mutex_);
    if (!offset_us_) return std::nullopt;
    return *offset_us_ + microseconds(moment);
}

}  // namespace holdfast::pg
