#include "holdfast/domain/timestamp.hpp"

#include <cstdint>

namespace holdfast::domain {

namespace {

void put(std::string& text, std::size_t at, std::size_t digits, std::int64_t value) {
    for (std::size_t place = at + digits; place-- > at; value /= 10)
        text[place] = static_cast<char>('0' + value % 10);
}

}  // namespace

// By hand: two of these are in every answer, and snprintf took a twentieth of the node's time.
std::string to_rfc3339(timestamp moment) {
    namespace chrono = std::chrono;
    const auto day = chrono::floor<chrono::days>(moment);
    const chrono::year_month_day date(day);
    const chrono::hh_mm_ss time(moment - day);
    std::string text = "0000-00-00T00:00:00.000000Z";
    put(text, 0, 4, static_cast<int>(date.year()));
    put(text, 5, 2, static_cast<unsigned>(date.month()));
    put(text, 8, 2, static_cast<unsigned>(date.day()));
    put(text, 11, 2, time.hours().count());
    put(text, 14, 2, time.minutes().count());
    put(text, 17, 2, time.seconds().count());
    put(text, 20, 6, time.subseconds().count());
    return text;
}

}  // namespace holdfast::domain
