#ifndef HOLDFAST_TESTS_SUPPORT_CHILD_PROCESS_HPP
#define HOLDFAST_TESTS_SUPPORT_CHILD_PROCESS_HPP

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::tests {

/// A program started by a test; killed, and reaped, when the test leaves it behind, also by an exception. Its group
/// dies with it, and the kernel kills it when the test process dies.
class child_process {
public:
    struct options {
        std::map<std::string, std::string>
            environment;               ///< Added to the test's own environment, without its HOLDFAST_*.
        std::filesystem::path output;  ///< Standard output and error go here; empty: to /dev/null.
        std::string user;              ///< Run as this user (only when the test runs as root).
    };

    /// Starts `argv[0]`, looked up in PATH. Throws std::system_error when it cannot be started.
    child_process(const std::vector<std::string>& argv, options options);
    child_process(child_process&& other) noexcept;
    child_process& operator=(child_process&&) = delete;
    ~child_process();

    pid_t pid() const noexcept { return pid_; }
    void signal(int number) const noexcept;
    /// The exit code, or 128 + the signal that ended it; nothing when it still runs after `limit`.
    std::optional<int> wait_for(std::chrono::milliseconds limit);
    bool running() { return !wait_for(std::chrono::milliseconds(0)); }
    /// Everything printed so far.
    std::string output() const;

private:
    pid_t pid_ = -1;
    std::optional<int> status_;
    std::filesystem::path output_;
};

/// Runs a program to its end, at most for `limit`. Throws std::runtime_error with its output when it fails or hangs.
std::string run_to_end(const std::vector<std::string>& argv, child_process::options options,
                       std::chrono::seconds limit = std::chrono::seconds(60));

}  // namespace holdfast::tests

#endif
