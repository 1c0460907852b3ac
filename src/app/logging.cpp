#include "holdfast/app/logging.hpp"

#include "holdfast/app/settings.hpp"

#include <boost/json/serialize.hpp>
#include <boost/nowide/utf/utf.hpp>

#include <poll.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cmath>
#include <cstdint>
#include <thread>
#include <variant>

namespace holdfast::app {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr std::size_t value_bytes_max = 2'048;
constexpr std::size_t queued_lines_max = 4'096;
constexpr auto patience_at_exit = 500ms;

/// `text` with every byte that belongs to no character replaced by U+FFFD.
std::string valid_utf8(std::string_view text) {
    namespace utf = boost::nowide::utf;
    std::string valid;
    valid.reserve(text.size());
    for (const char* next = text.data(); next != text.data() + text.size();) {
        const char* const start = next;
        const utf::code_point point = utf::utf_traits<char>::decode(next, text.data() + text.size());
        if (point == utf::illegal || point == utf::incomplete) {
            valid += "\xEF\xBF\xBD";
            next = start + 1;
        } else {
            valid.append(start, next);
        }
    }
    return valid;
}

std::string hexadecimal_escape(unsigned char code) {
    constexpr std::string_view digits = "0123456789abcdef";
    return {'\\', 'u', '0', '0', digits[code >> 4], digits[code & 15]};
}

void append_value(std::string& line, const std::string_view& text) {
    append_json_string(line, text);
}

void append_value(std::string& line, std::int64_t number) {
    line += std::to_string(number);
}

void append_value(std::string& line, bool value) {
    line += value ? "true" : "false";
}

void append_value(std::string& line, double number) {
    if (!std::isfinite(number)) {
        line += "null";  // JSON has no other word for it
        return;
    }
    std::array<char, 32> digits;
    const auto [end, fault] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
    line.append(digits.data(), end);
}

spdlog::level::level_enum to_spdlog(domain::log_level level) {
    switch (level) {
        case domain::log_level::debug:
            return spdlog::level::debug;
        case domain::log_level::info:
            return spdlog::level::info;
        case domain::log_level::warning:
            return spdlog::level::warn;
        case domain::log_level::error:
            return spdlog::level::err;
    }
    return spdlog::level::err;
}

domain::timestamp wall_clock() {
    return std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
}

/// Writes to a descriptor in pieces that a pipe takes without blocking once poll() has called it writable, so that the
/// writing thread can always be told to give up. spdlog's own sinks block in fwrite() for as long as the reader sleeps,
/// and the process could then not end. Used by the pool's one thread only.
class descriptor_sink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
public:
    explicit descriptor_sink(int output) : output_(output) {}

    /// From now on waits for the reader no longer than this. Any thread.
    void give_up_at(steady_clock::time_point moment) { give_up_at_ = moment.time_since_epoch().count(); }

    /// How many lines were taken from the queue and dealt with. Any thread.
    std::uint64_t lines_done() const { return lines_done_; }

    /// Lines that the queue has dropped so far are read from here. Set before the first line.
    void count_losses_of(spdlog::details::thread_pool& pool) { pool_ = &pool; }

private:
    void sink_it_(const spdlog::details::log_msg& message) override {
        report_losses();
        line_.assign(message.payload.data(), message.payload.size());
        line_ += '\n';
        write_line();
        ++lines_done_;
    }

    void flush_() override {}

    void report_losses() {
        const std::size_t lost = pool_->overrun_counter();
        if (lost == losses_reported_) return;
        const auto count = static_cast<std::int64_t>(lost - losses_reported_);
        losses_reported_ = lost;
        line_ = format_line(wall_clock(), domain::log_level::warning, "log_lines_lost", {{"lines", count}});
        line_ += '\n';
        write_line();
    }

    void write_line() {
        std::string_view rest = line_;
        while (!rest.empty() && wait_until_writable()) {
            const ssize_t written = ::write(output_, rest.data(), std::min<std::size_t>(rest.size(), PIPE_BUF));
            if (written >= 0)
                rest.remove_prefix(static_cast<std::size_t>(written));
            else if (errno != EINTR && errno != EAGAIN)
                return;  // nobody reads any more: there is no place left to complain
        }
    }

    bool wait_until_writable() const {
        constexpr int slice_ms = 20;
        while (steady_clock::now().time_since_epoch().count() < give_up_at_) {
            pollfd state{output_, POLLOUT, 0};
            if (::poll(&state, 1, slice_ms) > 0) return true;
        }
        return false;
    }

    const int output_;
    spdlog::details::thread_pool* pool_ = nullptr;
    std::atomic<steady_clock::rep> give_up_at_{steady_clock::time_point::max().time_since_epoch().count()};
    std::atomic<std::uint64_t> lines_done_{0};
    std::size_t losses_reported_ = 0;
    std::string line_;
};

}  // namespace

void append_json_string(std::string& line, std::string_view text) {
    const bool is_cut = text.size() > value_bytes_max;
    std::string valid = valid_utf8(text.substr(0, value_bytes_max));
    if (is_cut) valid += "...";
    const std::string escaped = boost::json::serialize(std::string_view(valid));
    // Boost.JSON escapes what RFC 8259 demands, which leaves DEL and the C1 controls; terminals obey those as well.
    for (std::size_t at = 0; at < escaped.size(); ++at) {
        const auto byte = static_cast<unsigned char>(escaped[at]);
        const auto next = static_cast<unsigned char>(at + 1 < escaped.size() ? escaped[at + 1] : 0);
        if (byte == 0x7f) {
            line += hexadecimal_escape(byte);
        } else if (byte == 0xc2 && next >= 0x80 && next <= 0x9f) {
            line += hexadecimal_escape(next);
            ++at;
        } else {
            line += escaped[at];
        }
    }
}

std::string format_line(domain::timestamp moment, domain::log_level level, std::string_view event,
                        std::initializer_list<domain::log_field> fields) {
    std::string line = "{\"time\":\"" + domain::to_rfc3339(moment) + "\",\"level\":\"";
    line += to_text(level);
    line += "\",\"event\":";
    append_json_string(line, event);
    for (const domain::log_field& field : fields) {
        line += ',';
        append_json_string(line, field.name);
        line += ':';
        std::visit([&line](const auto& value) { append_value(line, value); }, field.value);
    }
    line += '}';
    return line;
}

class log_journal::implementation {
public:
    implementation(domain::log_level minimum, int output)
        : sink_(std::make_shared<descriptor_sink>(output)),
          pool_(std::make_shared<spdlog::details::thread_pool>(queued_lines_max, 1)),
          logger_(std::make_shared<spdlog::async_logger>("holdfast", sink_, pool_,
                                                         spdlog::async_overflow_policy::overrun_oldest)) {
        sink_->count_losses_of(*pool_);
        logger_->set_level(to_spdlog(minimum));
    }

    ~implementation() { sink_->give_up_at(steady_clock::now() + patience_at_exit); }

    void write(domain::log_level level, std::string_view event, std::initializer_list<domain::log_field> fields) {
        if (!logger_->should_log(to_spdlog(level))) return;
        const std::string line = format_line(wall_clock(), level, event, fields);
        ++lines_queued_;
        logger_->log(to_spdlog(level), spdlog::string_view_t(line.data(), line.size()));
    }

    void flush(std::chrono::milliseconds limit) {
        const steady_clock::time_point end = steady_clock::now() + limit;
        const std::uint64_t goal = lines_queued_;
        while (sink_->lines_done() + pool_->overrun_counter() < goal && steady_clock::now() < end)
            std::this_thread::sleep_for(1ms);
    }

private:
    std::shared_ptr<descriptor_sink> sink_;
    std::shared_ptr<spdlog::details::thread_pool> pool_;  // joins its thread after the queue is empty
    std::shared_ptr<spdlog::async_logger> logger_;        // shared: spdlog's queue holds on to it
    std::atomic<std::uint64_t> lines_queued_{0};
};

log_journal::log_journal(domain::log_level minimum, int output)
    : implementation_(std::make_unique<implementation>(minimum, output)) {}

log_journal::~log_journal() = default;

void log_journal::write(domain::log_level level, std::string_view event,
                        std::initializer_list<domain::log_field> fields) noexcept {
    try {
        implementation_->write(level, event, fields);
    } catch (...) {
        // Out of memory, most likely. Losing a line is better than ending the process over it.
    }
}

void log_journal::flush(std::chrono::milliseconds limit) noexcept {
    try {
        implementation_->flush(limit);
    } catch (...) {
        // A lock that cannot be taken; the process is about to end.
    }
}

}  // namespace holdfast::app
