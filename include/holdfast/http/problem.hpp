#ifndef HOLDFAST_HTTP_PROBLEM_HPP
#define HOLDFAST_HTTP_PROBLEM_HPP

// Contract, section 5: what can go wrong, under which name and status, and how it is told (RFC 9457).

#include "holdfast/http/field_errors.hpp"
#include "holdfast/http/reply.hpp"

#include <span>
#include <string>
#include <string_view>

namespace holdfast::http {

enum class problem {
    invalid_json,
    bad_request,
    forbidden,
    not_found,
    method_not_allowed,
    request_timeout,
    payload_too_large,
    uri_too_long,
    headers_too_large,
    unsupported_media_type,
    expectation_failed,
    validation_failed,
    queue_full,
    internal_error,
    unavailable,
    overloaded,
    outcome_unknown,
};

/// What `GET /problems/{name}` tells about one of them.
struct problem_type {
    problem id;
    std::string_view name;
    int status;
    std::string_view title;
    std::string_view meaning;
    std::string_view what_to_do;
};

/// All of them, in the order of the enumeration.
std::span<const problem_type> problem_types() noexcept;
const problem_type& type_of(problem id) noexcept;
/// nullptr when there is none of that name.
const problem_type* find_problem_type(std::string_view name) noexcept;

/// The problem as an answer, with Retry-After where the status asks for it. `raw_path` is the path as it was received,
/// from which `instance` is made; empty when the request could not be read so far, then there is no `instance`.
reply problem_reply(problem id, std::string_view detail, std::string_view raw_path);
/// The same for validation_failed, with `errors`.
reply validation_reply(const field_errors& errors, std::string_view raw_path);

/// The answer to `GET /problems/{name}`.
reply problem_type_reply(const problem_type& type);

}  // namespace holdfast::http

#endif
