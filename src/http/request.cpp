#include "holdfast/http/request.hpp"

#include "holdfast/domain/idempotency_key.hpp"
#include "holdfast/http/limits.hpp"
#include "holdfast/http/problem.hpp"

#include <boost/beast/core/string.hpp>

#include <algorithm>

namespace holdfast::http {
namespace {

std::string_view trim(std::string_view text) {
    const auto first = text.find_first_not_of(" \t");
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// 404 and 405; also what the target itself gets wrong.
std::optional<reply> check_route(const request& request) {
    switch (request.route.result) {
        case match_result::matched:
        case match_result::options:
            return std::nullopt;
        case match_result::not_found:
            return problem_reply(problem::not_found, "There is no such path.", request.route.path);
        case match_result::bad_target:
            return problem_reply(problem::bad_request, "The request target is neither a path nor an absolute URI.", {});
        case match_result::method_not_allowed: {
            reply answer = problem_reply(problem::method_not_allowed, "The path does not know this method; see Allow.",
                                         request.route.path);
            answer.allow = request.route.allow;
            return answer;
        }
    }
    return std::nullopt;
}

/// 400: what is wrong with the escapes and headers, or nullptr.
const char* malformed_part(const request& request) {
    const bool matched = request.route.result == match_result::matched;
    if (request.host.count > 1) return "There is more than one Host header.";
    if (request.host.count == 0 && !request.http_1_0) return "There is no Host header.";
    if (matched && !percent_decode(request.route.variable)) return "The path holds a broken percent escape.";
    if (request.content_type.count > 1) return "There is more than one Content-Type header.";
    if (matched && request.route.meant == operation::acquire) {
        if (request.idempotency_key.count > 1) return "There is more than one Idempotency-Key header.";
        if (request.idempotency_key.count == 1 && !domain::idempotency_key::parse(request.idempotency_key.first))
            return "Idempotency-Key is not 1 to 255 visible ASCII characters.";
    }
    return nullptr;
}

bool is_media_type_refused(const request& request) {
    const bool is_json = request.content_type.count == 1 && is_json_media_type(request.content_type.first);
    if (request.method == "POST") return request.has_body && !is_json;
    if (request.method == "DELETE") return request.content_type.count != 0 && !is_json;
    return false;
}

}  // namespace

std::optional<reply> answer_from_head(const request& request) {
    if (auto refusal = check_route(request)) return refusal;
    const auto path = request.route.path;
    if (const char* detail = malformed_part(request)) return problem_reply(problem::bad_request, detail, path);
    if (is_media_type_refused(request))
        return problem_reply(problem::unsupported_media_type, "The body is not declared as application/json.", path);
    if (request.expects_other > 0)
        return problem_reply(problem::expectation_failed, "Only Expect: 100-continue is understood.", path);
    if (request.content_length.value_or(0) > limits::body_bytes_max)
        return problem_reply(problem::payload_too_large, "The body is larger than 16 KiB.", path);
    if (request.route.result == match_result::options) {
        reply answer(204);
        answer.allow = request.route.allow;
        return answer;
    }
    return std::nullopt;
}

bool is_json_media_type(std::string_view content_type) {
    auto end = content_type.find(';');
    if (!boost::beast::iequals(trim(content_type.substr(0, end)), "application/json")) return false;
    while (end != std::string_view::npos) {
        content_type.remove_prefix(end + 1);
        end = content_type.find(';');
        const auto parameter = trim(content_type.substr(0, end));
        const auto equals = parameter.find('=');
        if (!boost::beast::iequals(parameter.substr(0, equals), "charset")) continue;
        auto value = equals == std::string_view::npos ? std::string_view() : parameter.substr(equals + 1);
        if (value.size() >= 2 && value.starts_with('"') && value.ends_with('"'))
            value = value.substr(1, value.size() - 2);
        if (!boost::beast::iequals(value, "utf-8")) return false;
    }
    return true;
}

bool is_request_id(std::string_view text) {
    return !text.empty() && text.size() <= limits::request_id_bytes_max &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x21 && c <= 0x7e; });
}

}  // namespace holdfast::http
