#include "support/http_expect.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

namespace holdfast::test {

namespace json = boost::json;

json::object json_of(const http_answer& answer) {
    const auto type = answer.header("Content-Type");
    BOOST_TEST((type == "application/json" || type == "application/problem+json"), type);
    boost::system::error_code fault;
    const json::value body = json::parse(answer.body, fault);
    BOOST_REQUIRE_MESSAGE(!fault && body.is_object(), "no JSON object: " << answer.status << ' ' << answer.body);
    return body.as_object();
}

void check_problem(const http_answer& answer, int status, std::string_view name, std::string_view instance) {
    BOOST_TEST(answer.status == status, answer.status << ' ' << answer.body);
    BOOST_TEST(answer.header("Content-Type") == "application/problem+json");
    BOOST_TEST(answer.header("Cache-Control") == "no-store");
    BOOST_TEST(answer.count("X-Request-Id") == 1u);
    const bool retry = status == 503 || status == 429;
    BOOST_TEST(answer.header("Retry-After") == (retry ? "1" : ""));
    const json::object problem = json_of(answer);
    BOOST_TEST(problem.at("type").as_string() == "/problems/" + std::string(name));
    BOOST_TEST(problem.at("status").as_int64() == status);
    BOOST_TEST(!problem.at("title").as_string().empty());
    BOOST_TEST(!problem.at("detail").as_string().empty());
    BOOST_TEST(problem.contains("instance") == !instance.empty());
    if (problem.contains("instance")) BOOST_TEST(problem.at("instance").as_string() == std::string(instance));
    BOOST_TEST(problem.contains("errors") == (status == 422));
}

std::vector<std::string> errors_of(const http_answer& answer) {
    std::vector<std::string> errors;
    const json::object problem = json_of(answer);
    const json::value* listed = problem.if_contains("errors");
    if (!listed) return errors;
    for (const json::value& error : listed->as_array()) {
        BOOST_TEST(!error.at("message").as_string().empty());
        errors.push_back(std::string(error.at("field").as_string()) + ':' + std::string(error.at("code").as_string()));
    }
    return errors;
}

void check_invalid(const http_answer& answer, const std::vector<std::string>& errors) {
    BOOST_TEST(answer.status == 422, answer.status << ' ' << answer.body);
    const auto found = errors_of(answer);
    BOOST_TEST(found == errors, boost::test_tools::per_element());
}

}  // namespace holdfast::test
