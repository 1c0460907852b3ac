#include "support/child_process.hpp"

#include "support/temporary_directory.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

extern char** environ;

namespace holdfast::tests {
namespace {

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& added) {
    std::vector<std::string> merged;
    for (char** entry = environ; *entry; ++entry) {
        const std::string text(*entry);
        const std::string name = text.substr(0, text.find('='));
        if (!name.starts_with("HOLDFAST_") && !added.contains(name)) merged.push_back(text);
    }
    for (const auto& [name, value] : added)
        merged.push_back(name + "=" + value);
    return merged;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (std::string& text : texts)
        result.push_back(text.data());
    result.push_back(nullptr);
    return result;
}

}  // namespace

child_process::child_process(const std::vector<std::string>& argv, options options) : output_(options.output) {
    // Everything that allocates happens before the fork: another thread may hold the allocator's lock.
    std::vector<std::string> arguments = argv;
    std::vector<std::string> environment = merged_environment(options.environment);
    const auto argument_pointers = pointers(arguments);
    const auto environment_pointers = pointers(environment);
    const std::string output = output_.empty() ? "/dev/null" : output_.string();
    const passwd* account = options.user.empty() || geteuid() != 0 ? nullptr : getpwnam(options.user.c_str());
    if (!options.user.empty() && geteuid() == 0 && !account) throw std::runtime_error("no user " + options.user);
    const uid_t uid = account ? account->pw_uid : geteuid();
    const gid_t gid = account ? account->pw_gid : getegid();
    const pid_t parent = getpid();

    pid_ = fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) {
        setpgid(0, 0);
        if (account && (setgroups(0, nullptr) != 0 || setgid(gid) != 0 || setuid(uid) != 0)) _exit(126);
        prctl(PR_SET_PDEATHSIG, SIGKILL);  // after setuid, which clears it
        if (getppid() != parent) _exit(126);
        const int input = open("/dev/null", O_RDONLY);
        const int log = open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
        if (input < 0 || log < 0) _exit(126);
        dup2(input, 0);
        dup2(log, 1);
        dup2(log, 2);
        for (int other = 3; other < 1024; ++other)
            close(other);
        execvpe(argument_pointers[0], argument_pointers.data(), environment_pointers.data());
        _exit(127);
    }
    setpgid(pid_, pid_);
}

child_process::child_process(child_process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(other.status_), output_(std::move(other.output_)) {}

child_process::~child_process() {
    if (pid_ < 0) return;
    kill(-pid_, SIGKILL);
    if (!status_) waitpid(pid_, nullptr, 0);
}

void child_process::signal(int number) const noexcept {
    if (!status_) kill(pid_, number);
}

std::optional<int> child_process::wait_for(std::chrono::milliseconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!status_) {
        int status = 0;
        const pid_t reaped = waitpid(pid_, &status, WNOHANG);
        if (reaped == pid_) {
            status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        } else if (std::chrono::steady_clock::now() >= end) {
            return std::nullopt;
        } else {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
    }
    return status_;
}

std::string child_process::output() const {
    std::ostringstream text;
    text << std::ifstream(output_).rdbuf();
    return text.str();
}

std::string run_to_end(const std::vector<std::string>& argv, child_process::options options,
                       std::chrono::seconds limit) {
    temporary_directory directory;
    directory.give_to(options.user);
    options.output = directory.path() / "output";
    child_process process(argv, options);
    const auto status = process.wait_for(limit);
    const std::string output = process.output();
    if (status != 0) throw std::runtime_error(argv[0] + (status ? " failed: " : " did not end: ") + output);
    return output;
}

}  // namespace holdfast::tests
