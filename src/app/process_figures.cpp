#include "holdfast/app/process_figures.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>

namespace holdfast::app {
namespace {

struct close_file {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using open_file = std::unique_ptr<std::FILE, close_file>;

double seconds(const timeval& time) noexcept {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double cpu_seconds() noexcept {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double resident_bytes() noexcept {
    const open_file file(std::fopen("/proc/self/statm", "re"));
    long pages = 0;
    if (!file || std::fscanf(file.get(), "%*d %ld", &pages) != 1) return 0;
    return static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

double descriptors_max() noexcept {
    rlimit limit{};
    return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : 0;
}

/// How many numbers the table of descriptors has room for now: none above is open.
int descriptor_table_size() noexcept {
    const open_file file(std::fopen("/proc/self/status", "re"));
    char line[256];
    int size = 0;
    while (file && std::fgets(line, sizeof line, file.get()))
        if (std::sscanf(line, "FDSize: %d", &size) == 1) break;
    return size;
}

/// poll() tells which numbers are no descriptors. Listing /proc/self/fd would make an inode for each one: more than
/// twice the time, which the I/O thread has to spend, and with ten thousand connections that is felt.
double open_descriptors() noexcept {
    std::array<pollfd, 256> asked{};
    const int step = static_cast<int>(std::min(static_cast<double>(asked.size()), descriptors_max()));
    const int end = descriptor_table_size();
    double open = 0;
    for (int first = 0; first < end && step > 0; first += step) {
        const int count = std::min(step, end - first);
        for (int i = 0; i < count; ++i)
            asked[static_cast<std::size_t>(i)] = {first + i, 0, 0};
        if (::poll(asked.data(), static_cast<nfds_t>(count), 0) < 0) return 0;
        open += static_cast<double>(std::count_if(asked.begin(), asked.begin() + count,
                                                  [](const pollfd& each) { return !(each.revents & POLLNVAL); }));
    }
    return open;
}

/// Seconds after the start of the machine, from field 22 of /proc/self/stat. The name before may hold blanks and
/// brackets, so fields are counted from the last bracket.
double started_after_boot() noexcept {
    const open_file file(std::fopen("/proc/self/stat", "re"));
    char text[1024]{};
    if (!file || std::fread(text, 1, sizeof text - 1, file.get()) == 0) return 0;
    const char* rest = std::strrchr(text, ')');
    unsigned long long ticks = 0;
    constexpr const char* format = ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu";
    if (!rest || std::sscanf(rest, format, &ticks) != 1) return 0;
    return static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double as_seconds(const timespec& time) noexcept {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double start_time_seconds() noexcept {
    timespec now{};
    timespec since_boot{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    ::clock_gettime(CLOCK_BOOTTIME, &since_boot);
    return as_seconds(now) - as_seconds(since_boot) + started_after_boot();
}

}  // namespace

process_figures read_process_figures() noexcept {
    // Read once: it does not change, but the clock that it is reckoned by may be set.
    static const double start_time = start_time_seconds();
    process_figures figures;
    figures.cpu_seconds = cpu_seconds();
    figures.resident_bytes = resident_bytes();
    figures.open_descriptors = open_descriptors();
    figures.descriptors_max = descriptors_max();
    figures.start_time_seconds = start_time;
    return figures;
}

}  // namespace holdfast::app
