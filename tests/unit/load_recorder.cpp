#include "holdfast/cli/load_recorder.hpp"

#include <boost/test/unit_test.hpp>

using namespace std::chrono_literals;
using recorder = holdfast::cli::load_recorder;

BOOST_AUTO_TEST_SUITE(load_recorder)

BOOST_AUTO_TEST_CASE(a_latency_counts_by_when_it_was_due_and_throughput_by_when_it_was_done) {
    const auto now = recorder::clock::now();
    recorder over;  // the measured time ended a second ago
    over.measure(now - 10s, now - 1s);
    recorder under_way;
    under_way.measure(now - 5s, now + 1h);

    over.answered("look", now - 2s, now - 2s);  // due in time, answered too late
    over.finished("round", now - 2s);
    over.answered("look", now - 11s, now - 11s);     // neither
    under_way.answered("look", now - 7s, now - 7s);  // due while warming up, answered in time

    BOOST_TEST((over.report().answers == 0u && over.report().rounds == 0u));
    BOOST_TEST(over.report().latencies.at("look").count() == 1u);
    BOOST_TEST((over.report().latencies.at("look").highest() >= 2s));
    BOOST_TEST(over.report().latencies.at("round").count() == 1u);
    BOOST_TEST(under_way.report().answers == 1u);
    BOOST_TEST(under_way.report().latencies.empty());
}

BOOST_AUTO_TEST_CASE(nothing_counts_before_it_measures_but_errors) {
    const auto now = recorder::clock::now();
    recorder early;

    early.answered("look", now, now);
    early.refused();
    const bool passed_on = early.failed("503 overloaded");

    BOOST_TEST(!passed_on);
    BOOST_TEST((early.report().answers == 0u && early.report().refused == 0u && early.report().latencies.empty()));
    BOOST_TEST(early.report().errors.at("503 overloaded") == 1u);
}

BOOST_AUTO_TEST_CASE(the_measured_time_is_cut_off_but_never_lengthened) {
    const auto now = recorder::clock::now();
    recorder cut;
    cut.measure(now - 5s, now + 5s);

    cut.cut_off(now + 9s);
    BOOST_TEST((cut.until() == now + 5s));
    cut.cut_off(now);
    BOOST_TEST((cut.until() == now));
    BOOST_TEST((cut.is_measured(now - 1ns) && !cut.is_measured(now)));
}

BOOST_AUTO_TEST_CASE(labels_of_errors_are_bounded) {
    recorder many;

    for (int n = 0; n < 1'000; ++n)
        many.failed("error " + std::to_string(n));

    BOOST_TEST(many.report().errors.size() <= 65u);
    BOOST_TEST(many.report().errors.at("other") == 1'000 - (many.report().errors.size() - 1));
}

BOOST_AUTO_TEST_SUITE_END()
