#include "holdfast/http/request.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace holdfast::http;

BOOST_AUTO_TEST_SUITE(request_head)

BOOST_AUTO_TEST_CASE(json_media_types) {
    for (const char* type : {"application/json", "APPLICATION/JSON", " application/json ", "application/json;",
                             "application/json;charset=utf-8", "application/json ; Charset=\"utf-8\"",
                             "application/json; v=1; charset=UTF-8"})
        BOOST_TEST(is_json_media_type(type), type);
    for (const char* type : {"", ";", "json", "application/json5", "application/problem+json", "text/json",
                             "application/json, x", "application/json;charset=utf-16", "application/json;charset",
                             "application/json;charset=\"", "application/json;a=b;charset=latin1", "*/*"})
        BOOST_TEST(!is_json_media_type(type), type);
}

BOOST_AUTO_TEST_CASE(request_ids) {
    BOOST_TEST(is_request_id("!~"));
    BOOST_TEST(is_request_id(std::string(128, 'x')));
    for (const std::string& id :
         {std::string(), std::string(129, 'x'), std::string("a b"), std::string("\x7f"), std::string("\x80")})
        BOOST_TEST(!is_request_id(id));
}

BOOST_AUTO_TEST_SUITE_END()
