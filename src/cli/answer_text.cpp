#include "holdfast/cli/answer_text.hpp"

#include <charconv>

namespace holdfast::cli {
namespace {

/// Reads `digits` of them from `at` on.
std::optional<int> digits_at(std::string_view text, std::size_t at, std::size_t digits) {
    int number = 0;
    const char* const first = text.data() + at;
    const auto [end, fault] = std::from_chars(first, first + digits, number);
    if (fault != std::errc() || end != first + digits || *first == '-') return std::nullopt;
    return number;
}

std::optional<domain::timestamp> parse_rfc3339(std::string_view text) {
    constexpr std::string_view shape = "0000-00-00T00:00:00.000000Z";
    if (text.size() < shape.size()) return std::nullopt;
    for (std::size_t at = 0; at < shape.size(); ++at)
        if (shape[at] != '0' && text[at] != shape[at]) return std::nullopt;
    const auto year = digits_at(text, 0, 4), month = digits_at(text, 5, 2), day = digits_at(text, 8, 2);
    const auto hours = digits_at(text, 11, 2), minutes = digits_at(text, 14, 2), seconds = digits_at(text, 17, 2);
    const auto microseconds = digits_at(text, 20, 6);
    if (!year || !month || !day || !hours || !minutes || !seconds || !microseconds) return std::nullopt;
    namespace chrono = std::chrono;
    const chrono::year_month_day date(chrono::year(*year), chrono::month(static_cast<unsigned>(*month)),
                                      chrono::day(static_cast<unsigned>(*day)));
    if (!date.ok()) return std::nullopt;
    return chrono::sys_days(date) + chrono::hours(*hours) + chrono::minutes(*minutes) + chrono::seconds(*seconds) +
           chrono::microseconds(*microseconds);
}

}  // namespace

std::string_view problem_name(std::string_view body) {
    constexpr std::string_view mark = "/problems/";
    const std::size_t at = body.find(mark);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = body.substr(at + mark.size());
    const std::string_view name = rest.substr(0, rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"));
    return name.substr(0, 40);
}

std::string label_of(const client::answer& answer) {
    std::string label = std::to_string(answer.status);
    if (const std::string_view name = problem_name(answer.body); !name.empty()) label.append(" ").append(name);
    return label;
}

bool holds(std::string_view body, std::string_view part) {
    return body.find(part) != std::string_view::npos;
}

std::optional<std::int64_t> number_after(std::string_view body, std::string_view mark) {
    const std::size_t at = body.find(mark);
    if (at == std::string_view::npos) return std::nullopt;
    std::int64_t number = 0;
    const char* const first = body.data() + at + mark.size();
    const auto [end, fault] = std::from_chars(first, body.data() + body.size(), number);
    if (fault != std::errc()) return std::nullopt;
    return number;
}

std::optional<domain::timestamp> moment_after(std::string_view body, std::string_view mark) {
    const std::size_t at = body.find(mark);
    if (at == std::string_view::npos) return std::nullopt;
    const std::string_view rest = body.substr(at + mark.size());
    if (!rest.starts_with('"')) return std::nullopt;
    return parse_rfc3339(rest.substr(1));
}

}  // namespace holdfast::cli
