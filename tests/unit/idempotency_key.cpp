#include "holdfast/domain/idempotency_key.hpp"

#include <boost/test/unit_test.hpp>

using holdfast::domain::field_fault;

using key = holdfast::domain::idempotency_key;

BOOST_AUTO_TEST_SUITE(idempotency_key)

BOOST_AUTO_TEST_CASE(is_1_to_255_visible_ascii_characters) {
    std::string all;
    for (char c = 0x21; c <= 0x7e; ++c)
        all += c;
    BOOST_TEST(key::parse(all)->text() == all);
    BOOST_TEST(key::parse(std::string(255, 'k'))->text().size() == 255u);
}

BOOST_AUTO_TEST_CASE(refuses_the_rest) {
    for (const std::string& text : {std::string(), std::string(" "), std::string("a b"), std::string("\x7f"),
                                    std::string("\t"), std::string("é"), std::string("\0", 1)})
        BOOST_TEST((key::parse(text).error() == field_fault::invalid));
    BOOST_TEST((key::parse(std::string(256, 'k')).error() == field_fault::too_long));
}

BOOST_AUTO_TEST_CASE(compares_byte_for_byte) {
    BOOST_TEST((*key::parse("k") != *key::parse("K")));
}

BOOST_AUTO_TEST_SUITE_END()
