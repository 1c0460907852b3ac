#ifndef HOLDFAST_TESTS_SUPPORT_HTTP_EXPECT_HPP
#define HOLDFAST_TESTS_SUPPORT_HTTP_EXPECT_HPP

// What the contract says of every answer, as Boost.Test checks.

#include "support/http_client.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::test {

/// The body as a JSON object; fails the case when it is none, or when the content type says something else.
boost::json::object json_of(const http_answer& answer);

/// Checks that the answer is that problem: status, type, title, detail, media type, no-store, X-Request-Id, Retry-After
/// where it is due. `instance` is the expected percent-encoded path; "" when the problem must have none.
void check_problem(const http_answer& answer, int status, std::string_view name, std::string_view instance);

/// The entries of `errors` as "field:code", in their order.
std::vector<std::string> errors_of(const http_answer& answer);

/// Checks for a 422 with exactly these entries.
void check_invalid(const http_answer& answer, const std::vector<std::string>& errors);

}  // namespace holdfast::test

#endif
