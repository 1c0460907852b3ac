#include "holdfast/domain/timestamp.hpp"

#include <array>
#include <cstdio>

namespace holdfast::domain {

std::string to_rfc3339(timestamp moment) {
    namespace chrono = std::chrono;
    const auto day = chrono::floor<chrono::days>(moment);
    const chrono::year_month_day date(day);
    const chrono::hh_mm_ss time(moment - day);
    std::array<char, 64> text;
    const int length =
        std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", static_cast<int>(date.year()),
                      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                      static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                      static_cast<int>(time.seconds().count()), static_cast<int>(time.subseconds().count()));
    return std::string(text.data(), static_cast<std::size_t>(length));
}

}  // namespace holdfast::domain
