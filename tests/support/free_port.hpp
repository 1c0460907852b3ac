#ifndef HOLDFAST_TESTS_SUPPORT_FREE_PORT_HPP
#define HOLDFAST_TESTS_SUPPORT_FREE_PORT_HPP

#include <cstdint>

namespace holdfast::tests {

/// A loopback TCP port that nobody listened on a moment ago. Another program may take it before the caller does: start
/// what wants it at once, and start again with another one if that fails.
std::uint16_t free_port();

}  // namespace holdfast::tests

#endif
