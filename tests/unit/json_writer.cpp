#include "holdfast/http/json_writer.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

using namespace holdfast;

BOOST_AUTO_TEST_SUITE(json_writer)

BOOST_AUTO_TEST_CASE(every_character_survives) {
    std::string text;
    for (char c = 0; c >= 0; ++c) {
        text += c;
        if (c == 0x7f) break;
    }
    text += "é\xe2\x80\xa8\xf0\x9f\x94\x92";
    std::string json = "[";
    http::append_json_string(json, text);
    json += ']';
    BOOST_TEST(boost::json::parse(json).at(0).as_string() == text);
    for (const char c : json)
        BOOST_TEST((static_cast<unsigned char>(c) >= 0x20));
}

BOOST_AUTO_TEST_CASE(lock_names_its_members_in_order) {
    const domain::lock held(*domain::resource_name::parse("a\"b"), *domain::owner_name::parse("me\\"),
                            domain::timestamp(std::chrono::seconds(0)), domain::timestamp(std::chrono::seconds(30)),
                            std::chrono::milliseconds(29'999), *domain::fencing_token::parse(9007199254740991));
    const std::string lock =
        R"({"resource":"a\"b","owner":"me\\","acquired_at":"1970-01-01T00:00:00.000000Z",)"
        R"("expires_at":"1970-01-01T00:00:30.000000Z","expires_in_ms":29999,"fencing_token":9007199254740991})";
    BOOST_TEST(http::lock_json(held) == lock);
    service::grant grant(held);
    BOOST_TEST(http::granted_json(grant) == R"({"acquired":true,"lock":)" + lock + "}");
    grant.waited = std::chrono::milliseconds(0);
    BOOST_TEST(http::granted_json(grant) == R"({"acquired":true,"lock":)" + lock + R"(,"waited_ms":0})");
    BOOST_TEST(http::refused_json(held.resource(), service::refusal(std::chrono::milliseconds(1))) ==
               R"({"acquired":false,"resource":"a\"b","retry_after_ms":1})");
    const service::refusal in_line(std::chrono::milliseconds(1), service::kept_place{3, std::chrono::seconds(5)});
    BOOST_TEST(http::refused_json(held.resource(), in_line) ==
               R"({"acquired":false,"resource":"a\"b","retry_after_ms":1,"position":3,"place_kept_ms":5000})");
}

BOOST_AUTO_TEST_SUITE_END()
