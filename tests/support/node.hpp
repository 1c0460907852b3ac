#ifndef HOLDFAST_TESTS_SUPPORT_NODE_HPP
#define HOLDFAST_TESTS_SUPPORT_NODE_HPP

#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <boost/json/object.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::tests {

/// A real `holdfast serve` on a free loopback port, killed with the object.
class node {
public:
    enum class wait_for {
        nothing,    ///< Returns at once; the port is not known yet.
        listening,  ///< Returns when the port is known.
        ready,      ///< Returns when /readyz says 200.
    };
    /// Names without HOLDFAST_, e.g. {"LOCK_TIMEOUT_MS", "300"}.
    using settings = std::map<std::string, std::string>;

    /// Starts it against this database. `wrapper` goes before the program, e.g. {"prlimit", "--nofile=64"}. Throws
    /// std::runtime_error with the log when it does not get as far as `until` within 20 s.
    explicit node(const std::string& database_url, settings extra = {}, wait_for until = wait_for::ready,
                  std::vector<std::string> wrapper = {});

    /// Only after wait_for::listening or ready.
    std::uint16_t port() const noexcept { return port_; }
    pid_t pid() const noexcept { return process_->pid(); }

    void signal(int number) const noexcept { process_->signal(number); }
    /// The exit code, or 128 + the signal that ended it; nothing when it still runs after `limit`.
    std::optional<int> wait_for_exit(std::chrono::milliseconds limit) { return process_->wait_for(limit); }
    bool running() { return process_->running(); }
    /// SIGKILL, and waits for the end.
    void kill();
    bool wait_until_ready(std::chrono::milliseconds limit) const;

    /// Everything printed so far, and its whole lines.
    std::string log() const { return process_->output(); }
    std::vector<std::string> log_lines() const;
    /// The lines that are JSON objects with this `event`.
    std::vector<boost::json::object> events(const std::string& event) const;
    bool wait_for_event(const std::string& event, std::chrono::milliseconds limit) const;
    std::size_t resident_bytes() const;

private:
    temporary_directory directory_;
    std::unique_ptr<child_process> process_;
    std::uint16_t port_ = 0;
};

}  // namespace holdfast::tests

#endif
