#include "holdfast/domain/ttl.hpp"

#include <boost/test/unit_test.hpp>

#include <limits>

using holdfast::domain::field_fault;

using lease_time = holdfast::domain::ttl;

BOOST_AUTO_TEST_SUITE(ttl)

BOOST_AUTO_TEST_CASE(is_1_to_the_maximum) {
    BOOST_TEST(lease_time::parse(1, 60)->length().count() == 1);
    BOOST_TEST(lease_time::parse(60, 60)->length().count() == 60);
}

BOOST_AUTO_TEST_CASE(is_out_of_range_beyond) {
    for (const std::int64_t seconds :
         {std::int64_t{0}, std::int64_t{-1}, std::int64_t{61}, std::numeric_limits<std::int64_t>::min(),
          std::numeric_limits<std::int64_t>::max()})
        BOOST_TEST((lease_time::parse(seconds, 60).error() == field_fault::out_of_range));
}

BOOST_AUTO_TEST_SUITE_END()
