#ifndef HOLDFAST_DOMAIN_JOURNAL_HPP
#define HOLDFAST_DOMAIN_JOURNAL_HPP

// The port through which every layer logs. What a line looks like, and where it goes, is app/logging's business.

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <variant>

namespace holdfast::domain {

enum class log_level { debug, info, warning, error };

/// One member of a log line. Views: valid only during the call.
struct log_field {
    std::string_view name;
    std::variant<std::string_view, std::int64_t, double, bool> value;
};

class journal {
public:
    virtual ~journal() = default;

    /// Writes one line. Callable from any thread; never throws; may drop lines rather than block for long. `event` is a
    /// fixed snake_case phrase, what varies goes into `fields`. Values may hold any bytes: the journal escapes them.
    virtual void write(log_level level, std::string_view event, std::initializer_list<log_field> fields) noexcept = 0;
};

}  // namespace holdfast::domain

#endif
