#include "holdfast/http/problem.hpp"

#include "holdfast/http/limits.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <set>

using namespace holdfast::http;

namespace kind = holdfast::http;

BOOST_AUTO_TEST_SUITE(problem)

BOOST_AUTO_TEST_CASE(every_type_can_be_found_by_its_name) {
    std::set<std::string_view> names;
    for (const problem_type& type : problem_types()) {
        BOOST_TEST(names.insert(type.name).second);
        BOOST_TEST(find_problem_type(type.name) == &type);
        BOOST_TEST(&type_of(type.id) == &type);
        BOOST_TEST((type.status >= 400 && type.status < 600));
        BOOST_TEST(!type.title.empty());
        BOOST_TEST(!type.meaning.empty());
        BOOST_TEST(!type.what_to_do.empty());
    }
    BOOST_TEST(find_problem_type("") == nullptr);
}

BOOST_AUTO_TEST_CASE(retry_after_goes_with_503_and_429_only) {
    for (const problem_type& type : problem_types())
        BOOST_TEST(problem_reply(type.id, "d", "/").retry_after == (type.status == 503 || type.status == 429));
}

BOOST_AUTO_TEST_CASE(errors_beyond_the_limit_are_counted) {
    field_errors errors;
    for (std::size_t i = 0; i < limits::field_errors_listed_max; ++i)
        errors.add("f", holdfast::domain::field_fault::unknown, "m");
    const auto exact = boost::json::parse(validation_reply(errors, "/p").body);
    BOOST_TEST(exact.at("errors").as_array().size() == limits::field_errors_listed_max);
    BOOST_TEST(exact.at("detail").as_string().find("not listed") == boost::json::string::npos);
    errors.add("g", holdfast::domain::field_fault::unknown, "m");
    errors.add("h", holdfast::domain::field_fault::unknown, "m");
    const auto more = boost::json::parse(validation_reply(errors, "/p").body);
    BOOST_TEST(more.at("errors").as_array().size() == limits::field_errors_listed_max);
    BOOST_TEST(more.at("detail").as_string().find("Errors not listed: 2.") != boost::json::string::npos);
}

BOOST_AUTO_TEST_CASE(instance_needs_a_path) {
    BOOST_TEST(
        !boost::json::parse(problem_reply(kind::problem::bad_request, "d", "").body).as_object().contains("instance"));
    BOOST_TEST(
        boost::json::parse(problem_reply(kind::problem::bad_request, "d", "/\xff").body).at("instance").as_string() ==
        "/%FF");
}

BOOST_AUTO_TEST_SUITE_END()
