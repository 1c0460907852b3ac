#ifndef HOLDFAST_DOMAIN_TIMESTAMP_HPP
#define HOLDFAST_DOMAIN_TIMESTAMP_HPP

#include <chrono>
#include <string>

namespace holdfast::domain {

/// A moment by the database's clock, in the microseconds that PostgreSQL keeps.
using timestamp = std::chrono::sys_time<std::chrono::microseconds>;

/// `YYYY-MM-DDTHH:MM:SS.ffffffZ` (RFC 3339, UTC, always six digits), for the years 0 to 9999.
std::string to_rfc3339(timestamp moment);

}  // namespace holdfast::domain

#endif
