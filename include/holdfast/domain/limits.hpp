#ifndef HOLDFAST_DOMAIN_LIMITS_HPP
#define HOLDFAST_DOMAIN_LIMITS_HPP

// Every bound of the contract that is not a setting. Bounds that operators may set live in app/settings.hpp with these
// as their defaults.

#include <cstddef>
#include <cstdint>

namespace holdfast::domain::limits {

inline constexpr std::size_t resource_bytes_max = 255;
inline constexpr std::size_t owner_bytes_max = 255;
inline constexpr std::size_t idempotency_key_bytes_max = 255;

inline constexpr std::int64_t ttl_seconds_max_default = 86'400;
/// What the setting max_ttl_seconds itself may be at most: ten years.
inline constexpr std::int64_t ttl_seconds_max_ceiling = 315'360'000;

/// Tokens stay exact in every JSON reader that keeps numbers as IEEE doubles (RFC 8259, section 6).
inline constexpr std::int64_t fencing_token_max = (std::int64_t{1} << 53) - 1;

/// Longest wait in line of one request: below the usual 60 s after which proxies give up.
inline constexpr std::int64_t wait_seconds_max = 50;

}  // namespace holdfast::domain::limits

#endif
