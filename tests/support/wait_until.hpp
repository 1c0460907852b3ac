#ifndef HOLDFAST_TESTS_SUPPORT_WAIT_UNTIL_HPP
#define HOLDFAST_TESTS_SUPPORT_WAIT_UNTIL_HPP

#include <chrono>
#include <cstdint>
#include <thread>

namespace holdfast::tests {

/// Asks again and again until `condition()` holds; false when it does not within `limit`.
template <class Condition>
bool wait_until(std::chrono::milliseconds limit, Condition condition) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() >= end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
}

/// Whether somebody takes a TCP connection on this loopback port now.
bool accepts_connections(std::uint16_t port);

}  // namespace holdfast::tests

#endif
