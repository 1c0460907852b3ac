#include "holdfast/domain/resource_name.hpp"

#include <boost/test/unit_test.hpp>

using holdfast::domain::field_fault;
using resource = holdfast::domain::resource_name;

BOOST_AUTO_TEST_SUITE(resource_name)

BOOST_AUTO_TEST_CASE(keeps_the_text_byte_for_byte) {
    for (const std::string& text :
         {std::string("a"), std::string(" a "), std::string("."), std::string(".."), std::string("a/b"),
          std::string("é"), std::string("\xf0\x9f\x94\x92"), std::string(255, 'x')}) {
        const auto name = resource::parse(text);
        BOOST_REQUIRE(name);
        BOOST_TEST(name->text() == text);
    }
}

BOOST_AUTO_TEST_CASE(refuses_more_than_255_bytes) {
    BOOST_TEST((resource::parse(std::string(256, 'x')).error() == field_fault::too_long));
    std::string wide;
    for (int i = 0; i < 128; ++i)
        wide += "é";
    BOOST_TEST((resource::parse(wide).error() == field_fault::too_long));
}

BOOST_AUTO_TEST_CASE(refuses_emptiness_controls_and_broken_utf8) {
    for (const std::string& text :
         {std::string(), std::string("a\0b", 3), std::string("\x1f"), std::string("\x7f"), std::string("\n"),
          std::string("\xff"), std::string("\xc0\x80"), std::string("\xed\xa0\x80"), std::string("\xf4\x90\x80\x80"),
          std::string("\xe2\x82")})
        BOOST_TEST((resource::parse(text).error() == field_fault::invalid));
}

BOOST_AUTO_TEST_CASE(orders_and_compares_by_bytes) {
    const auto upper = *resource::parse("B");
    const auto lower = *resource::parse("a");
    const auto accented = *resource::parse("é");
    BOOST_TEST((upper < lower));
    BOOST_TEST((lower < accented));
    BOOST_TEST((*resource::parse("e\xcc\x81") != accented));
}

BOOST_AUTO_TEST_SUITE_END()
