#ifndef HOLDFAST_APP_LOGGING_HPP
#define HOLDFAST_APP_LOGGING_HPP

// One JSON object a line on standard output: {"time":…,"level":…,"event":…, the fields in their order}. A thread of its
// own does the writing, so that a reader who stalls never holds up the I/O thread: the queue between them is bounded,
// and when it is full the oldest line goes. The next line that gets through is preceded by `log_lines_lost` with their
// number.

#include "holdfast/domain/journal.hpp"
#include "holdfast/domain/timestamp.hpp"

#include <chrono>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast::app {

/// Appends `text` to `line` as a JSON string: valid UTF-8 whatever the bytes (each one that belongs to no character
/// becomes U+FFFD), every control character (U+0000 to U+001F, U+007F to U+009F) escaped, cut after 2 KiB.
void append_json_string(std::string& line, std::string_view text);

/// One line without its line feed; `moment` by this node's clock.
std::string format_line(domain::timestamp moment, domain::log_level level, std::string_view event,
                        std::initializer_list<domain::log_field> fields);

class log_journal final : public domain::journal {
public:
    /// Writes lines of at least `minimum` to the file descriptor `output`, which it does not own. Starts the thread.
    log_journal(domain::log_level minimum, int output);
    /// Gives a stalled reader half a second for what is queued, then drops the rest. No write() may be running.
    ~log_journal() override;

    void write(domain::log_level level, std::string_view event,
               std::initializer_list<domain::log_field> fields) noexcept override;

    /// Returns when every line queued before the call is written or lost, at the latest after `limit`. For ends that do
    /// not destroy the journal.
    void flush(std::chrono::milliseconds limit) noexcept;

private:
    class implementation;
    std::unique_ptr<implementation> implementation_;
};

}  // namespace holdfast::app

#endif
