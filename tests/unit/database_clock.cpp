#include "holdfast/pg/database_clock.hpp"

#include <boost/test/unit_test.hpp>

namespace {

using namespace std::chrono_literals;
using holdfast::pg::database_clock;

const database_clock::steady_time start{std::chrono::hours(1)};
constexpr std::int64_t noon_us = 1'800'000'000'000'000;

}  // namespace

BOOST_AUTO_TEST_SUITE(database_clock)

BOOST_AUTO_TEST_CASE(knows_nothing_before_the_first_reading) {
    const holdfast::pg::database_clock clock;
    BOOST_TEST(!clock.at(start).has_value());
}

BOOST_AUTO_TEST_CASE(counts_on_from_the_moment_the_answer_came) {
    holdfast::pg::database_clock clock;
    clock.read(noon_us, start, start + 10ms);
    BOOST_TEST(clock.at(start + 10ms).value() == noon_us);
    BOOST_TEST(clock.at(start + 1010ms).value() == noon_us + 1'000'000);
}

BOOST_AUTO_TEST_CASE(a_quicker_round_trip_sharpens_the_reading) {
    holdfast::pg::database_clock clock;
    clock.read(noon_us, start, start + 100ms);
    clock.read(noon_us + 200'000, start + 200ms, start + 201ms);
    BOOST_TEST(clock.at(start + 201ms).value() == noon_us + 200'000);
}

BOOST_AUTO_TEST_CASE(a_slower_round_trip_that_agrees_changes_nothing) {
    holdfast::pg::database_clock clock;
    clock.read(noon_us, start, start + 1ms);
    const auto before = clock.at(start + 5s);
    clock.read(noon_us + 200'000, start + 199ms, start + 999ms);
    BOOST_TEST(clock.at(start + 5s).value() == before.value());
}

BOOST_AUTO_TEST_CASE(follows_a_step_in_either_direction) {
    holdfast::pg::database_clock clock;
    clock.read(noon_us, start, start + 1ms);
    clock.read(noon_us + 3'600'000'000, start + 1s, start + 1001ms);
    BOOST_TEST(clock.at(start + 1001ms).value() == noon_us + 3'600'000'000);
    clock.read(noon_us, start + 2s, start + 2001ms);
    BOOST_TEST(clock.at(start + 2001ms).value() == noon_us);
}

BOOST_AUTO_TEST_SUITE_END()
