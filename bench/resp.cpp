#include "resp.hpp"

#include <charconv>

namespace holdfast::rivals {

std::optional<resp_reply> parse_reply(std::string_view read) {
    constexpr std::string_view end = "\r\n";
    const std::size_t line_end = read.find(end);
    if (line_end == std::string_view::npos) return std::nullopt;
    const std::string_view line = read.substr(1, line_end - 1);
    const std::size_t head = line_end + end.size();
    switch (read.front()) {
        case '+':
        case '-':
        case ':':
            return resp_reply{read.front(), line, head};
        case '$':
            break;
        default:  // not over an enum class: any byte may come
            return resp_reply{0, line, head};
    }
    if (line == "-1") return resp_reply{'_', {}, head};
    std::size_t length = 0;
    const auto [last, fault] = std::from_chars(line.data(), line.data() + line.size(), length);
    if (fault != std::errc() || last != line.data() + line.size()) return resp_reply{0, line, head};
    if (read.size() < head + length + end.size()) return std::nullopt;
    return resp_reply{'$', read.substr(head, length), head + length + end.size()};
}

void append_argument(std::string& command, std::string_view argument) {
    command.append("$").append(std::to_string(argument.size())).append("\r\n").append(argument).append("\r\n");
}

}  // namespace holdfast::rivals
