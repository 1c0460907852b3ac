#include "holdfast/domain/owner_name.hpp"

#include <boost/test/unit_test.hpp>

using holdfast::domain::field_fault;

using owner = holdfast::domain::owner_name;

BOOST_AUTO_TEST_SUITE(owner_name)

BOOST_AUTO_TEST_CASE(trims_ascii_white_space_at_both_ends_only) {
    BOOST_TEST(owner::parse(" \t\n\v\f\r a b \r\n")->text() == "a b");
    BOOST_TEST(owner::parse("\xc2\xa0")->text() == "\xc2\xa0");
}

BOOST_AUTO_TEST_CASE(counts_bytes_after_trimming) {
    BOOST_TEST(owner::parse("  " + std::string(255, 'o') + "  ")->text().size() == 255u);
    BOOST_TEST((owner::parse(std::string(256, 'o')).error() == field_fault::too_long));
}

BOOST_AUTO_TEST_CASE(refuses_blank_controls_and_broken_utf8) {
    for (const std::string& text : {std::string(), std::string(" \t "), std::string("a\0", 2), std::string("a\nb"),
                                    std::string("\x7f"), std::string("\x80")})
        BOOST_TEST((owner::parse(text).error() == field_fault::invalid));
}

BOOST_AUTO_TEST_CASE(compares_byte_for_byte) {
    BOOST_TEST((*owner::parse("me") == *owner::parse(" me")));
    BOOST_TEST((*owner::parse("me") != *owner::parse("Me")));
}

BOOST_AUTO_TEST_SUITE_END()
