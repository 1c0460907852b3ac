#include "holdfast/domain/text.hpp"

#include <boost/test/unit_test.hpp>

#include <string>

using namespace holdfast::domain;

BOOST_AUTO_TEST_SUITE(text)

BOOST_AUTO_TEST_CASE(plain_utf8_takes_every_length_of_character) {
    for (const char* good : {"", "a", "~", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
                             "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
        BOOST_TEST(is_plain_utf8(good));
}

BOOST_AUTO_TEST_CASE(plain_utf8_refuses_overlong_surrogates_too_large_and_cut) {
    for (const char* bad :
         {"\x80", "\xbf", "\xc0\xaf", "\xc1\x81", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x8f\xbf\xbf",
          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xfe", "\xff", "\xc2", "\xe2\x82", "\xf0\x9f\x94",
          "\xc2"
          "a",
          "a\xc2"})
        BOOST_TEST(!is_plain_utf8(bad));
}

BOOST_AUTO_TEST_CASE(plain_utf8_refuses_ascii_controls_only) {
    for (char c = 0; c < 0x20; ++c)
        BOOST_TEST(!is_plain_utf8(std::string(1, c)));
    BOOST_TEST(!is_plain_utf8("\x7f"));
    BOOST_TEST(is_plain_utf8("\xc2\x9f"));
}

BOOST_AUTO_TEST_CASE(trimming_leaves_the_middle) {
    BOOST_TEST(trim_ascii_white_space(" \t\n\v\f\ra \t b\r\n") == "a \t b");
    BOOST_TEST(trim_ascii_white_space(" \t ").empty());
    BOOST_TEST(trim_ascii_white_space("").empty());
}

BOOST_AUTO_TEST_SUITE_END()
