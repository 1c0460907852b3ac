#include "holdfast/domain/timestamp.hpp"

#include <boost/test/unit_test.hpp>

using holdfast::domain::to_rfc3339;

using moment = holdfast::domain::timestamp;

BOOST_AUTO_TEST_SUITE(timestamp)

BOOST_AUTO_TEST_CASE(always_has_six_digits) {
    BOOST_TEST(to_rfc3339(moment()) == "1970-01-01T00:00:00.000000Z");
    BOOST_TEST(to_rfc3339(moment(std::chrono::microseconds(1))) == "1970-01-01T00:00:00.000001Z");
    BOOST_TEST(to_rfc3339(moment(std::chrono::microseconds(1'714'979'289'123'456))) == "2024-05-06T07:08:09.123456Z");
}

BOOST_AUTO_TEST_CASE(rounds_nothing_before_the_epoch) {
    BOOST_TEST(to_rfc3339(moment(std::chrono::microseconds(-1))) == "1969-12-31T23:59:59.999999Z");
}

BOOST_AUTO_TEST_CASE(knows_leap_days) {
    const auto day = std::chrono::sys_days(std::chrono::year(2024) / 2 / 29);
    BOOST_TEST(to_rfc3339(moment(day)) == "2024-02-29T00:00:00.000000Z");
}

BOOST_AUTO_TEST_SUITE_END()
