#include "holdfast/http/head_scanner.hpp"

#include "holdfast/http/limits.hpp"

#include <boost/beast/core/string.hpp>

#include <algorithm>
#include <array>

namespace holdfast::http {
namespace {

/// RFC 9110, 5.6.2
constexpr auto token_characters = [] {
    std::array<bool, 256> table{};
    for (const char c :
         std::string_view("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&'*+-.^_`|~"))
        table[static_cast<unsigned char>(c)] = true;
    return table;
}();

bool is_token_character(char c) {
    return token_characters[static_cast<unsigned char>(c)];
}

bool is_control(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
}

std::string_view trim_field_value(std::string_view value) {
    const auto first = value.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return value.substr(first, value.find_last_not_of(" \t") - first + 1);
}

}  // namespace

head_scanner::verdict head_scanner::refuse(problem reason, std::string_view detail) {
    refusal_ = reason;
    detail_ = detail;
    return verdict::refused;
}

head_scanner::verdict head_scanner::scan(std::string_view received) {
    for (;;) {
        const auto line_feed = received.find('\n', searched_);
        if (!check_limits(received.substr(0, line_feed == std::string_view::npos ? received.size() : line_feed + 1)))
            return verdict::refused;
        if (line_feed == std::string_view::npos) {
            searched_ = received.size();
            return verdict::need_more;
        }
        auto line = received.substr(line_start_, line_feed - line_start_);
        if (line.empty() || line.back() != '\r')
            return refuse(problem::bad_request, "A line of the head does not end with CR LF.");
        line.remove_suffix(1);
        const bool was_request_line = fields_start_ == 0;
        if (!scan_line(line)) return verdict::refused;
        line_start_ = searched_ = line_feed + 1;
        if (was_request_line) fields_start_ = line_start_;
        if (line.empty()) return check_framing() ? verdict::complete : verdict::refused;
    }
}

/// `received` ends where the line that is looked at ends, or in the middle of it.
bool head_scanner::check_limits(std::string_view received) {
    if (fields_start_ != 0) {
        const auto line = received.substr(line_start_);
        const bool may_be_empty_line = line == "\r" || line == "\r\n";
        if (may_be_empty_line || received.size() - fields_start_ <= limits::header_bytes_max) return true;
        refuse(problem::headers_too_large, "The header block is larger than 16 KiB.");
        return false;
    }
    const auto method_end = received.find(' ');
    if (std::min(method_end, received.size()) > limits::method_bytes_max) {
        refuse(problem::bad_request, "The request does not begin with a request line.");
        return false;
    }
    if (method_end == std::string_view::npos) return true;
    const auto target =
        received.substr(method_end + 1, received.find_first_of(" \r\n", method_end + 1) - method_end - 1);
    if (target.size() > limits::target_bytes_max) {
        refuse(problem::uri_too_long, "The request target is longer than 8 KiB.");
        return false;
    }
    if (received.size() > limits::method_bytes_max + limits::target_bytes_max + 64) {
        refuse(problem::bad_request, "The request line is malformed.");
        return false;
    }
    return true;
}

bool head_scanner::scan_line(std::string_view line) {
    if (fields_start_ == 0) return scan_request_line(line);
    return line.empty() || scan_field(line);
}

bool head_scanner::scan_request_line(std::string_view line) {
    const auto method_end = line.find(' ');
    const auto target_end = line.rfind(' ');
    const bool three_parts = method_end != std::string_view::npos && method_end != 0 && method_end + 1 < target_end &&
                             line.find(' ', method_end + 1) == target_end;
    const bool clean =
        std::none_of(line.begin(), line.end(), is_control) &&
        std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(std::min(method_end, line.size())),
                    is_token_character);
    if (!three_parts || !clean) {
        refuse(problem::bad_request, "The request line is malformed.");
        return false;
    }
    const auto version = line.substr(target_end + 1);
    http_1_0_ = version == "HTTP/1.0";
    if (http_1_0_ || version == "HTTP/1.1") return true;
    refuse(problem::bad_request, "The protocol version is neither HTTP/1.1 nor HTTP/1.0.");
    return false;
}

bool head_scanner::scan_field(std::string_view line) {
    if (line.front() == ' ' || line.front() == '\t') {
        refuse(problem::bad_request, "A header is folded over several lines.");
        return false;
    }
    const auto colon = line.find(':');
    const auto name = line.substr(0, colon);
    if (colon == std::string_view::npos || name.empty() || !std::all_of(name.begin(), name.end(), is_token_character)) {
        refuse(problem::bad_request, "A header has no proper name.");
        return false;
    }
    const auto value = trim_field_value(line.substr(colon + 1));
    if (std::any_of(value.begin(), value.end(), [](char c) { return c != '\t' && is_control(c); })) {
        refuse(problem::bad_request, "A header holds a control character.");
        return false;
    }
    return scan_framing(name, value);
}

bool head_scanner::scan_framing(std::string_view name, std::string_view value) {
    if (boost::beast::iequals(name, "Content-Length")) {
        ++content_lengths_;
        const bool digits = std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
        // Eighteen digits fit into 64 bits and are far above every limit.
        if (digits && !value.empty() && value.size() <= 18) return true;
        refuse(problem::bad_request, "Content-Length is not a plain number.");
        return false;
    }
    if (boost::beast::iequals(name, "Transfer-Encoding")) {
        ++transfer_encodings_;
        if (boost::beast::iequals(value, "chunked")) return true;
        refuse(problem::bad_request, "Transfer-Encoding is not `chunked`.");
        return false;
    }
    return true;
}

bool head_scanner::check_framing() {
    if (content_lengths_ + transfer_encodings_ > 1) {
        refuse(problem::bad_request, "The length of the body is declared more than once.");
        return false;
    }
    if (transfer_encodings_ == 1 && http_1_0_) {
        refuse(problem::bad_request, "HTTP/1.0 has no Transfer-Encoding.");
        return false;
    }
    return true;
}

}  // namespace holdfast::http
