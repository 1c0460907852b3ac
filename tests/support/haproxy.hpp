#ifndef HOLDFAST_TESTS_SUPPORT_HAPROXY_HPP
#define HOLDFAST_TESTS_SUPPORT_HAPROXY_HPP

#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::tests {

/// A real HAProxy before several nodes on loopback, with the project's own configuration (deploy/haproxy.cfg) but for
/// its addresses. Gone with the object.
class haproxy {
public:
    /// Starts it and waits until it takes connections; whether it found the nodes alive by then is not said. Throws
    /// std::runtime_error with its log on failure.
    explicit haproxy(const std::vector<std::uint16_t>& node_ports);

    std::uint16_t port() const noexcept { return port_; }
    /// Until a request through it reaches a ready node.
    bool wait_until_ready(std::chrono::milliseconds limit) const;
    std::string log() const { return process_->output(); }

private:
    std::string configuration(const std::vector<std::uint16_t>& node_ports) const;

    temporary_directory directory_;
    std::uint16_t port_ = 0;
    std::optional<child_process> process_;
};

}  // namespace holdfast::tests

#endif
