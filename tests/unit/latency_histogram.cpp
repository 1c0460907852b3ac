#include "holdfast/cli/latency_histogram.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

using namespace std::chrono_literals;
using histogram_of_latencies = holdfast::cli::latency_histogram;

BOOST_AUTO_TEST_SUITE(latency_histogram)

BOOST_AUTO_TEST_CASE(an_empty_one_says_zero) {
    const histogram_of_latencies histogram;

    BOOST_TEST(histogram.count() == 0u);
    BOOST_TEST((histogram.percentile(0.5) == 0us && histogram.percentile(1) == 0us && histogram.highest() == 0us));
}

BOOST_AUTO_TEST_CASE(small_values_are_exact) {
    histogram_of_latencies histogram;
    for (int n = 1; n <= 100; ++n)
        histogram.record(std::chrono::microseconds(n));

    BOOST_TEST((histogram.percentile(0) == 1us));
    BOOST_TEST((histogram.percentile(0.5) == 50us));
    BOOST_TEST((histogram.percentile(0.99) == 99us));
    BOOST_TEST((histogram.percentile(0.991) == 100us));
    BOOST_TEST((histogram.percentile(1) == 100us));
}

BOOST_AUTO_TEST_CASE(percentiles_are_never_below_the_true_ones_and_at_most_one_bucket_above) {
    std::mt19937_64 random(7);
    std::lognormal_distribution<double> shape(7, 2);
    histogram_of_latencies histogram;
    std::vector<std::int64_t> exact;
    for (int n = 0; n < 100'000; ++n) {
        exact.push_back(static_cast<std::int64_t>(shape(random)));
        histogram.record(std::chrono::microseconds(exact.back()));
    }
    std::sort(exact.begin(), exact.end());

    for (const double share : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
        const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(exact.size())));
        const std::int64_t truth = exact[rank - 1];
        const std::int64_t said = histogram.percentile(share).count();
        BOOST_TEST(said >= truth, share);
        BOOST_TEST(static_cast<double>(said) <= static_cast<double>(truth) * (1 + 1 / 64.0) + 1, share);
    }
    BOOST_TEST(histogram.highest().count() == exact.back());
}

BOOST_AUTO_TEST_CASE(every_power_of_two_and_its_neighbours_land_in_order) {
    std::int64_t last = -1;
    for (int bits = 7; bits < 36; ++bits) {
        for (const std::int64_t offset : {-1, 0, 1}) {
            histogram_of_latencies histogram;
            const std::int64_t value = (std::int64_t{1} << bits) + offset;
            histogram.record(std::chrono::microseconds(value));
            histogram.record(24h);  // so that the highest does not cap what the bucket says

            const std::int64_t said = histogram.percentile(0.5).count();

            BOOST_TEST(said >= value);
            BOOST_TEST(said <= value + value / 64 + 1);
            BOOST_TEST(said >= last);
            last = said;
        }
    }
}

BOOST_AUTO_TEST_CASE(durations_out_of_range_count_as_the_nearest) {
    histogram_of_latencies histogram;
    histogram.record(-5ms);
    histogram.record(24h * 365);

    BOOST_TEST((histogram.percentile(0.5) == 0us));
    BOOST_TEST((histogram.highest() == std::chrono::microseconds((std::int64_t{1} << 36) - 1)));
    BOOST_TEST(histogram.count() == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
