#include "support/haproxy.hpp"

#include "support/free_port.hpp"
#include "support/lock_client.hpp"
#include "support/wait_until.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace holdfast::tests {

using namespace std::chrono_literals;

haproxy::haproxy(const std::vector<std::uint16_t>& node_ports) : port_(free_port()) {
    const auto file = directory_.path() / "haproxy.cfg";
    std::ofstream(file) << configuration(node_ports);
    process_.emplace(std::vector<std::string>{"/usr/sbin/haproxy", "-db", "-f", file.string()},
                     child_process::options{{}, directory_.path() / "log", {}});
    if (!wait_until(10s, [this] { return accepts_connections(port_); }))
        throw std::runtime_error("HAProxy did not start: " + log());
}

bool haproxy::wait_until_ready(std::chrono::milliseconds limit) const {
    return wait_until(limit, [this] { return lock_client(port_).get("/readyz").status == 200; });
}

std::string haproxy::configuration(const std::vector<std::uint16_t>& node_ports) const {
    std::ifstream original(HOLDFAST_SOURCE_DIR "/deploy/haproxy.cfg");
    if (!original) throw std::runtime_error("deploy/haproxy.cfg cannot be read");
    std::ostringstream changed;
    bool within_resolvers = false;
    for (std::string line; std::getline(original, line);) {
        std::istringstream words(line);
        std::string first;
        words >> first;
        // A section begins at the margin; the resolver belongs to the container engine.
        if (!line.empty() && line.front() != ' ' && line.front() != '#') within_resolvers = first == "resolvers";
        if (within_resolvers || first == "server") continue;
        changed << (first == "bind" ? "    bind 127.0.0.1:" + std::to_string(port_) : line) << '\n';
    }
    // The servers belong to the section that stands last.
    for (std::size_t i = 0; i < node_ports.size(); ++i)
        changed << "    server node-" << i + 1 << " 127.0.0.1:" << node_ports[i] << '\n';
    return changed.str();
}

}  // namespace holdfast::tests
