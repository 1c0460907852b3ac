#include "support/lease_recorder.hpp"

#include <boost/test/unit_test.hpp>

namespace {

using namespace std::chrono_literals;
using holdfast::tests::lease_recorder;
using std::chrono::milliseconds;

/// A case's clock: clients and database agree, and a grant is written in the middle of its request.
struct story {
    lease_recorder recorder;
    std::int64_t token = 0;

    static lease_recorder::moment at(milliseconds when) { return lease_recorder::moment(1h) + when; }
    static std::string written(milliseconds when) {
        const std::string digits = std::to_string(when.count());
        return std::string(9 - digits.size(), '0') + digits;
    }
    static lease_recorder::lease lease(const std::string& owner, std::int64_t token, milliseconds when,
                                       milliseconds ttl) {
        return {"r", owner, token, written(when), written(when + ttl), ttl};
    }
    void grant(const std::string& owner, milliseconds when, milliseconds ttl = 1'000ms) {
        recorder.granted(lease(owner, ++token, when, ttl), {at(when - 1ms), at(when + 1ms)});
    }
    void release(const std::string& owner, milliseconds when) { recorder.ended("r", owner, at(when)); }
    std::vector<std::string> violations() const { return recorder.violations(); }
    bool complains_of(const std::string& what) const {
        for (const std::string& each : violations())
            if (each.starts_with(what)) return true;
        return false;
    }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(lease_recorder)

BOOST_FIXTURE_TEST_CASE(leases_that_follow_each_other_are_fine, story) {
    grant("a", 10ms);
    release("a", 50ms);
    grant("b", 60ms);
    grant("c", 1'070ms);
    grant("c", 1'100ms);
    release("c", 1'200ms);
    grant("d", 1'300ms);
    BOOST_TEST(violations().empty());
    BOOST_TEST(recorder.grants() == 5u);
}

BOOST_FIXTURE_TEST_CASE(a_grant_within_anothers_lease_is_found, story) {
    grant("a", 10ms);
    grant("b", 500ms);
    BOOST_TEST(complains_of("granted while another held it"));
    BOOST_TEST(complains_of("two hold it"));
    BOOST_TEST(complains_of("written leases overlap"));
}

BOOST_FIXTURE_TEST_CASE(a_long_lease_is_found_behind_many_short_ones, story) {
    grant("long", 10ms, 60'000ms);
    for (int each = 0; each < 50; ++each) {
        const milliseconds when = 100ms + each * 20ms;
        grant("long", when, 60'000ms);
        release("long", when + 10ms);
    }
    grant("a", 2'000ms, 60'000ms);
    grant("a", 2'050ms, 60'000ms);
    grant("b", 40'000ms);
    BOOST_TEST(complains_of("two hold it"));
    BOOST_TEST(complains_of("written leases overlap"));
}

BOOST_FIXTURE_TEST_CASE(written_ends_count_though_the_clients_saw_nothing, story) {
    // Answers so late that the clients' clocks prove nothing.
    recorder.granted(lease("a", 1, 10ms, 1'000ms), {at(0ms), at(5'000ms)});
    recorder.granted(lease("b", 2, 500ms, 1'000ms), {at(0ms), at(5'000ms)});
    BOOST_TEST(violations().size() == 1u);
    BOOST_TEST(complains_of("written leases overlap"));
}

BOOST_FIXTURE_TEST_CASE(a_renewal_moves_the_end, story) {
    grant("a", 10ms);
    recorder.renewed({"r", "a", 1, written(10ms), written(5'000ms), 4'500ms}, {at(499ms), at(501ms)});
    grant("b", 1'500ms);
    BOOST_TEST(complains_of("written leases overlap"));
    BOOST_TEST(!complains_of("renewed"));
}

BOOST_FIXTURE_TEST_CASE(a_renewal_of_what_was_never_granted_is_found, story) {
    recorder.renewed(lease("a", 7, 10ms, 1'000ms), {at(9ms), at(11ms)});
    BOOST_TEST(complains_of("renewed, never granted"));
}

BOOST_FIXTURE_TEST_CASE(tokens_rise, story) {
    grant("a", 10ms);
    token = 0;
    grant("b", 2'000ms);
    BOOST_TEST(complains_of("token granted twice"));

    story other;
    other.token = 5;
    other.grant("a", 10ms);
    other.token = 2;
    other.grant("b", 2'000ms);
    BOOST_TEST(other.complains_of("greater token, earlier grant"));
    BOOST_TEST(other.complains_of("an earlier grant has a greater token than a later one"));
}

BOOST_AUTO_TEST_SUITE_END()
