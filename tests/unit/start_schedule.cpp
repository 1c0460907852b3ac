#include "holdfast/cli/start_schedule.hpp"

#include <boost/test/unit_test.hpp>

using namespace std::chrono_literals;
using schedule = holdfast::cli::start_schedule;

namespace {

constexpr schedule::clock::time_point begin(1'000s);

}  // namespace

BOOST_AUTO_TEST_SUITE(start_schedule)

BOOST_AUTO_TEST_CASE(starts_are_evenly_spread_and_do_not_drift) {
    schedule thrice(begin, 3);

    for (int whole = 0; whole < 1'000; ++whole) {
        BOOST_REQUIRE((thrice.take() == begin + whole * 1s));
        BOOST_REQUIRE((thrice.take() == begin + whole * 1s + 333'333'333ns));
        BOOST_REQUIRE((thrice.take() == begin + whole * 1s + 666'666'666ns));
    }
}

BOOST_AUTO_TEST_CASE(what_is_due_is_what_can_be_taken) {
    for (const std::int64_t per_second : {1, 3, 7, 1'000, 999'983}) {
        schedule taken(begin, per_second);
        const schedule asked(begin, per_second);
        std::int64_t before_from = 0;
        std::int64_t within = 0;
        const auto from = begin + 123'456'789ns;
        const auto until = begin + 1'714'285'714ns;  // a start of 7 a second is due at just this moment

        for (auto due = taken.take(); due < until; due = taken.take())
            ++(due < from ? before_from : within);

        BOOST_TEST(asked.due_within(from, until) == within);
        BOOST_TEST(asked.due_within(begin, from) == before_from);
    }
}

BOOST_AUTO_TEST_CASE(nothing_is_due_before_the_begin_or_in_no_time) {
    const schedule hundred(begin, 100);

    BOOST_TEST(hundred.due_within(begin - 10s, begin) == 0);
    BOOST_TEST(hundred.due_within(begin - 10s, begin + 1ns) == 1);
    BOOST_TEST(hundred.due_within(begin + 2s, begin + 2s) == 0);
    BOOST_TEST(hundred.due_within(begin + 2s, begin + 1s) == 0);
}

BOOST_AUTO_TEST_CASE(a_day_at_the_greatest_rate_does_not_overflow) {
    const schedule fast(begin, 1'000'000'000);

    BOOST_TEST(fast.due_within(begin, begin + 24h) == 86'400'000'000'000);
}

BOOST_AUTO_TEST_SUITE_END()
