#ifndef HOLDFAST_HTTP_ROUTER_HPP
#define HOLDFAST_HTTP_ROUTER_HPP

// Contract, section 4: which request is meant by a method and a target. Pure: text in, values out.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::http {

enum class operation { acquire, look, release, renew, leave, health, readiness, openapi, problem_type, metrics };

inline constexpr std::size_t operations = 10;

/// One line of the request table. A pattern has at most one variable segment, in braces.
struct route {
    std::string_view method;  ///< HEAD goes where GET goes; OPTIONS goes everywhere.
    std::string_view pattern;
    operation meant;
};

std::span<const route> routes() noexcept;

enum class match_result {
    matched,
    options,             ///< OPTIONS on a known path, or on `*`.
    not_found,           ///< No such path.
    method_not_allowed,  ///< The path is known, the method is not for it.
    bad_target,          ///< The target is neither a path, nor an absolute URI, nor the `*` of OPTIONS.
};

struct route_match {
    match_result result = match_result::bad_target;
    operation meant = operation::health;  ///< Only when matched.
    std::string_view path;                ///< The raw path of the target without its query; empty for a bad target.
    std::string_view variable;  ///< The raw variable segment, still percent-encoded; never empty if there is one.
    std::string allow;          ///< For options and method_not_allowed: the value of Allow.
};

/// The views refer to `target`. The path is split on raw `/`; fixed segments are compared as they are, so that an
/// encoded twin of a path cannot pass by the rules of a proxy. The query is not looked at.
route_match match_route(std::string_view method, std::string_view target);

/// Decodes each %XX once; `+` stays a plus. Nothing when an escape is broken.
std::optional<std::string> percent_decode(std::string_view text);

/// `raw_path` as it may stand in a URI: what is no URI character, and a `%` that begins no escape, is percent-encoded.
std::string as_uri_path(std::string_view raw_path);

}  // namespace holdfast::http

#endif
