#include "holdfast/http/problem.hpp"

#include "holdfast/http/json_writer.hpp"
#include "holdfast/http/router.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace holdfast::http {
namespace {

constexpr std::array<problem_type, 17> types{{
    {problem::invalid_json, "invalid-json", 400, "The body is no JSON text",
     "The body of the request is not a JSON text in UTF-8 (RFC 8259).",
     "Mend the body. Mind quotes, commas, lone surrogates and bytes that are not UTF-8."},
    {problem::bad_request, "bad-request", 400, "The request is malformed",
     "The framing of the request, an escape in its path or one of its headers is broken. When the framing is broken, "
     "the "
     "connection is closed after this answer.",
     "Mend the client, or the proxy between it and this node; the detail names the place."},
    {problem::forbidden, "forbidden", 403, "Not the holder",
     "The lock is held by another owner, or under another fencing token than the one that the request names.",
     "Stop the work that the lock guarded: the lease was lost and someone else may hold it. Acquire again if it is "
     "still "
     "needed."},
    {problem::not_found, "not-found", 404, "Not found",
     "There is no such path, or the lock is not held by anyone: it was never taken, was released, or has expired.",
     "For a release this means the same as success: you do not hold it any more. For a renew: the lease has ended, "
     "acquire "
     "again. Otherwise check the path."},
    {problem::method_not_allowed, "method-not-allowed", 405, "The path does not know the method",
     "The path exists, but not with this method.", "Use one of the methods in the header Allow."},
    {problem::request_timeout, "request-timeout", 408, "The request did not arrive in time",
     "The header or the body of the request was not whole within its deadline. It had no effect.",
     "Send the request again, on a new connection."},
    {problem::payload_too_large, "payload-too-large", 413, "The body is too large",
     "The body of a request may have at most 16 KiB.", "Send a smaller body; the members of a request need no more."},
    {problem::uri_too_long, "uri-too-long", 414, "The request target is too long",
     "The target of a request may have at most 8 KiB.", "Use a shorter name: a resource has at most 255 bytes."},
    {problem::headers_too_large, "headers-too-large", 431, "The header block is too large",
     "The headers of a request may have at most 16 KiB together.", "Send fewer or shorter headers."},
    {problem::unsupported_media_type, "unsupported-media-type", 415, "The body is not declared as JSON",
     "A body is read only as application/json. A POST with a body must say so; a DELETE must not say otherwise.",
     "Send the header Content-Type: application/json."},
    {problem::expectation_failed, "expectation-failed", 417, "The expectation cannot be met",
     "The only expectation that is understood is 100-continue.", "Leave the header Expect out, or send 100-continue."},
    {problem::validation_failed, "validation-failed", 422, "Fields are not valid",
     "One or more fields of the request break the rules; `errors` lists each with a code: required, invalid, too_long, "
     "out_of_range, unknown or repeated.",
     "Mend the fields that `errors` names. Repeating the request unchanged gives the same answer."},
    {problem::queue_full, "queue-full", 429, "The queue for the resource is full",
     "As many owners wait for the resource as may wait for one; places that are kept for an owner's next request are "
     "counted. The request has no place and had no effect.",
     "Try again after the time in Retry-After, with growing pauses, or ask without wait_seconds."},
    {problem::internal_error, "internal-error", 500, "A fault of ours",
     "The node met a fault that it did not expect. The detail holds an id that the node's log explains.",
     "Tell the operators the id. An acquire with an Idempotency-Key may be repeated safely."},
    {problem::unavailable, "unavailable", 503, "Not available now",
     "The database cannot be reached or takes no writes, or the node is going down. The request certainly had no "
     "effect.",
     "Try again after the time in Retry-After."},
    {problem::overloaded, "overloaded", 503, "Too busy",
     "A bounded queue is full, the time ran out before the request was sent to the database, or the lock's row was "
     "kept "
     "locked by someone else. The request certainly had no effect.",
     "Try again after the time in Retry-After, with growing pauses."},
    {problem::outcome_unknown, "outcome-unknown", 503, "The outcome is not known",
     "The request was sent to the database and no answer came: it may have taken effect, or may still do so until the "
     "time "
     "in the detail has passed.",
     "Repeat an acquire with the same Idempotency-Key, at any time. Or wait for the time in the detail, then look at "
     "the "
     "lock and compare owner and fencing_token. A renew or release may be repeated under its fencing_token."},
}};

constexpr bool in_order() {
    for (std::size_t i = 0; i < types.size(); ++i)
        if (static_cast<std::size_t>(types[i].id) != i) return false;
    return true;
}

static_assert(in_order(), "type_of() takes the enumeration as index");

void append_member(std::string& json, std::string_view name, std::string_view value) {
    append_json_string(json, name);
    json += ':';
    append_json_string(json, value);
}

/// The members up to and without the closing brace.
std::string open_problem(const problem_type& type, std::string_view detail, std::string_view raw_path) {
    std::string json = "{";
    append_member(json, "type", "/problems/" + std::string(type.name));
    json += ',';
    append_member(json, "title", type.title);
    json += ",\"status\":" + std::to_string(type.status) + ',';
    append_member(json, "detail", detail);
    if (!raw_path.empty()) {
        json += ',';
        append_member(json, "instance", as_uri_path(raw_path));
    }
    return json;
}

reply close_problem(const problem_type& type, std::string json) {
    json += '}';
    reply answer(type.status, problem_json_type, std::move(json));
    answer.retry_after = type.status == 503 || type.status == 429;
    answer.problem = type.name;
    return answer;
}

}  // namespace

std::span<const problem_type> problem_types() noexcept {
    return types;
}

const problem_type& type_of(problem id) noexcept {
    return types[static_cast<std::size_t>(id)];
}

const problem_type* find_problem_type(std::string_view name) noexcept {
    const auto found = std::find_if(types.begin(), types.end(), [&](const auto& type) { return type.name == name; });
    return found == types.end() ? nullptr : &*found;
}

reply problem_reply(problem id, std::string_view detail, std::string_view raw_path) {
    const problem_type& type = type_of(id);
    return close_problem(type, open_problem(type, detail, raw_path));
}

reply validation_reply(const field_errors& errors, std::string_view raw_path) {
    const problem_type& type = type_of(problem::validation_failed);
    std::string detail = "Fields of the request are not valid.";
    if (errors.unlisted() > 0) detail += " Errors not listed: " + std::to_string(errors.unlisted()) + ".";
    std::string json = open_problem(type, detail, raw_path) + ",\"errors\":[";
    for (const field_error& error : errors.listed()) {
        if (json.back() != '[') json += ',';
        json += '{';
        append_member(json, "field", error.field);
        json += ',';
        append_member(json, "code", code_of(error.fault));
        json += ',';
        append_member(json, "message", error.message);
        json += '}';
    }
    json += ']';
    return close_problem(type, std::move(json));
}

reply problem_type_reply(const problem_type& type) {
    std::string json = "{";
    append_member(json, "type", "/problems/" + std::string(type.name));
    json += ',';
    append_member(json, "title", type.title);
    json += ",\"status\":" + std::to_string(type.status) + ',';
    append_member(json, "meaning", type.meaning);
    json += ',';
    append_member(json, "what_to_do", type.what_to_do);
    json += '}';
    reply answer(200, json_type, std::move(json));
    answer.no_store = false;
    return answer;
}

}  // namespace holdfast::http
