#ifndef HOLDFAST_HTTP_REPLY_HPP
#define HOLDFAST_HTTP_REPLY_HPP

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::http {

/// What a handler answers. The session adds the version, the framing, Date, X-Request-Id and Connection.
struct reply {
    /// An answer without a body (204).
    explicit reply(int status) : status(status) {}
    reply(int status, std::string_view content_type, std::string body)
        : status(status), content_type(content_type), body(std::move(body)) {}

    int status;
    std::string_view content_type;  ///< A literal.
    std::string body;
    std::string allow;         ///< The value of Allow; empty: no such header.
    bool no_store = true;      ///< Cache-Control: no-store.
    bool retry_after = false;  ///< Retry-After: 1.
    bool close = false;        ///< Close the connection behind the answer: the client should ask another node.

    std::string_view problem;  ///< The problem's name, for the log; a literal. Empty: no problem.

    std::string error_id;   ///< The opaque id that a 500 shows; the log line has it too.
    std::string log_cause;  ///< What the log, and only the log, says about the cause.

    std::function<void()> undelivered;  ///< Called when the answer could not be written. Empty: nobody minds.
};

inline constexpr std::string_view json_type = "application/json";
inline constexpr std::string_view problem_json_type = "application/problem+json";

}  // namespace holdfast::http

#endif
