#include "holdfast/domain/fencing_token.hpp"

#include <boost/test/unit_test.hpp>

using holdfast::domain::field_fault;

using token = holdfast::domain::fencing_token;

BOOST_AUTO_TEST_SUITE(fencing_token)

BOOST_AUTO_TEST_CASE(is_0_to_2_53_minus_1) {
    BOOST_TEST(token::parse(0)->number() == 0);
    BOOST_TEST(token::parse(9007199254740991)->number() == 9007199254740991);
    BOOST_TEST((token::parse(-1).error() == field_fault::out_of_range));
    BOOST_TEST((token::parse(9007199254740992).error() == field_fault::out_of_range));
}

BOOST_AUTO_TEST_CASE(orders_by_number) {
    BOOST_TEST((*token::parse(9) < *token::parse(10)));
}

BOOST_AUTO_TEST_SUITE_END()
