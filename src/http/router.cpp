#include "holdfast/http/router.hpp"

#include <boost/url/grammar/hexdig_chars.hpp>

#include <algorithm>
#include <array>

namespace holdfast::http {
namespace {

constexpr std::array<route, 12> table{{
    {"GET", "/locks/{resource}", operation::look},
    {"POST", "/locks/{resource}", operation::acquire},
    {"DELETE", "/locks/{resource}", operation::release},
    {"POST", "/locks/{resource}/release", operation::release},
    {"POST", "/locks/{resource}/renew", operation::renew},
    {"DELETE", "/locks/{resource}/queue", operation::leave},
    {"POST", "/locks/{resource}/queue/leave", operation::leave},
    {"GET", "/healthz", operation::health},
    {"GET", "/readyz", operation::readiness},
    {"GET", "/openapi.json", operation::openapi},
    {"GET", "/problems/{name}", operation::problem_type},
    {"GET", "/metrics", operation::metrics},
}};

constexpr std::string_view allow_anywhere = "GET, HEAD, POST, DELETE, OPTIONS";

/// Cuts the first segment, with the `/` before it, off `path`.
std::string_view take_segment(std::string_view& path) {
    path.remove_prefix(1);
    const auto segment = path.substr(0, path.find('/'));
    path.remove_prefix(segment.size());
    return segment;
}

/// The variable segment ("" if the pattern has none) when `path` fits the pattern.
std::optional<std::string_view> fit(std::string_view pattern, std::string_view path) {
    std::string_view variable;
    while (!pattern.empty() && !path.empty()) {
        const auto expected = take_segment(pattern);
        const auto found = take_segment(path);
        if (expected.starts_with('{')) {
            if (found.empty()) return std::nullopt;
            variable = found;
        } else if (expected != found) {
            return std::nullopt;
        }
    }
    if (!pattern.empty() || !path.empty()) return std::nullopt;
    return variable;
}

/// The path of an origin-form or absolute-form target with its query cut off; "" for an absolute URI without a path;
/// nothing for other targets.
std::optional<std::string_view> path_of(std::string_view target) {
    const auto scheme_end = target.find("://");
    if (!target.starts_with('/')) {
        const auto scheme = target.substr(0, scheme_end);
        const auto is_scheme_character = [](char c) {
            return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' || c == '-' ||
                   c == '.';
        };
        if (scheme_end == std::string_view::npos || scheme.empty() ||
            !std::all_of(scheme.begin(), scheme.end(), is_scheme_character))
            return std::nullopt;
        target.remove_prefix(scheme_end + 3);
        target.remove_prefix(std::min(target.find_first_of("/?#"), target.size()));
    }
    // A fragment never belongs into a request target; what the client meant by it is anyone's guess.
    if (target.find('#') != std::string_view::npos) return std::nullopt;
    return target.substr(0, target.find('?'));
}

std::string allowed_methods(std::string_view path) {
    std::string allow;
    for (const route& entry : table) {
        if (!fit(entry.pattern, path)) continue;
        allow += entry.method;
        allow += entry.method == "GET" ? ", HEAD, " : ", ";
    }
    return allow + "OPTIONS";
}

}  // namespace

std::span<const route> routes() noexcept {
    return table;
}

route_match match_route(std::string_view method, std::string_view target) {
    route_match match;
    if (target == "*" && method == "OPTIONS") {
        match.result = match_result::options;
        match.allow = allow_anywhere;
        return match;
    }
    const auto path = path_of(target);
    if (!path) return match;
    match.path = *path;
    match.result = match_result::not_found;
    for (const route& entry : table) {
        const auto variable = fit(entry.pattern, match.path);
        if (!variable) continue;
        match.variable = *variable;
        match.result = match_result::method_not_allowed;
        if (entry.method == method || (entry.method == "GET" && method == "HEAD")) {
            match.result = match_result::matched;
            match.meant = entry.meant;
            return match;
        }
    }
    if (match.result == match_result::method_not_allowed) {
        if (method == "OPTIONS") match.result = match_result::options;
        match.allow = allowed_methods(match.path);
    }
    return match;
}

std::optional<std::string> percent_decode(std::string_view text) {
    std::string decoded;
    decoded.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            decoded += text[i];
            continue;
        }
        if (text.size() - i < 3) return std::nullopt;
        const auto high = boost::urls::grammar::hexdig_value(text[i + 1]);
        const auto low = boost::urls::grammar::hexdig_value(text[i + 2]);
        if (high < 0 || low < 0) return std::nullopt;
        decoded += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return decoded;
}

std::string as_uri_path(std::string_view raw_path) {
    constexpr std::string_view hex = "0123456789ABCDEF";
    constexpr std::string_view path_characters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&'()*+,;=:@/";
    std::string encoded;
    encoded.reserve(raw_path.size());
    for (std::size_t i = 0; i < raw_path.size(); ++i) {
        const char c = raw_path[i];
        const bool begins_escape = c == '%' && percent_decode(raw_path.substr(i, 3)).has_value();
        if (begins_escape || path_characters.find(c) != std::string_view::npos) {
            encoded += c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        encoded += '%';
        encoded += hex[byte / 16];
        encoded += hex[byte % 16];
    }
    return encoded;
}

}  // namespace holdfast::http
