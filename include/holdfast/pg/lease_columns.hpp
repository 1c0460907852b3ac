#ifndef HOLDFAST_PG_LEASE_COLUMNS_HPP
#define HOLDFAST_PG_LEASE_COLUMNS_HPP

#include "holdfast/domain/lock.hpp"
#include "holdfast/pg/result_row.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

namespace holdfast::pg {

inline domain::timestamp as_timestamp(std::int64_t us) {
    return domain::timestamp(std::chrono::microseconds(us));
}

/// The lease columns that the queries share, as of the clock reading beside them.
struct lease_columns {
    explicit lease_columns(const result_row& row)
        : acquired_at_us(row.number(column::acquired_at_us)),
          expires_at_us(row.number(column::expires_at_us)),
          clock_us(row.number(column::clock_us)) {}

    std::int64_t left_us() const { return expires_at_us - clock_us; }

    /// Rounded up.
    std::chrono::milliseconds left() const {
        return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::microseconds(left_us()));
    }

    /// Rounded down, and never more than the lease is long, even if the clock was stepped backward.
    std::chrono::milliseconds expires_in() const {
        return std::chrono::milliseconds(std::min(left_us(), expires_at_us - acquired_at_us) / 1'000);
    }

    domain::lock as_lock(const domain::resource_name& resource, domain::owner_name owner, std::int64_t token) const {
        return domain::lock(resource, std::move(owner), as_timestamp(acquired_at_us), as_timestamp(expires_at_us),
                            expires_in(), *domain::fencing_token::parse(token));
    }

    std::int64_t acquired_at_us;
    std::int64_t expires_at_us;
    std::int64_t clock_us;
};

}  // namespace holdfast::pg

#endif
