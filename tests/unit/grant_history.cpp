#include "holdfast/cli/grant_history.hpp"

#include "holdfast/cli/answer_text.hpp"
#include "holdfast/cli/load_recorder.hpp"

#include <boost/test/unit_test.hpp>

using namespace std::chrono_literals;
using holdfast::cli::judged_grant;
using holdfast::cli::seen_grant;

namespace {

/// One resource whose leases last ten seconds. All moments in milliseconds from the start; the database's clock, which
/// starts at another number, agrees with ours.
struct line {
    using clock = holdfast::cli::grant_history::clock;

    holdfast::cli::grant_history history;
    const clock::time_point start = clock::now();

    clock::time_point at(int ms) const { return start + std::chrono::milliseconds(ms); }
    static holdfast::domain::timestamp stamp(int ms) {
        return holdfast::domain::timestamp(1'000'000s + std::chrono::milliseconds(ms));
    }

    seen_grant grant(std::int64_t token, std::size_t owner, int asked, int received) const {
        seen_grant grant;
        grant.fencing_token = token;
        grant.owner = owner;
        grant.server = owner % 2;
        grant.acquired_at = stamp(received - 1);
        grant.expires_at = stamp(received - 1 + 10'000);
        grant.asked_at = at(asked);
        grant.received_at = at(received);
        grant.trusted_until = at(received - 2 + 10'000);
        return grant;
    }
    judged_grant granted(std::int64_t token, std::size_t owner, int asked, int received) {
        return history.granted(grant(token, owner, asked, received));
    }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(grant_history)

BOOST_AUTO_TEST_CASE(a_handover_counts_from_the_release_to_the_next_grant) {
    line line;
    line.granted(5, 0, 0, 10);
    line.history.releasing(5, line.at(100), 0);

    const judged_grant next = line.granted(8, 1, 50, 107);

    BOOST_REQUIRE(next.handover);
    BOOST_TEST((*next.handover == 7ms));
    BOOST_TEST(next.is_across_servers);
    BOOST_TEST(!next.lateness);
    BOOST_TEST(next.violation.empty());
    BOOST_TEST(line.history.last_token() == 8);
}

BOOST_AUTO_TEST_CASE(who_asked_after_the_release_was_not_handed_anything) {
    line line;
    line.granted(5, 0, 0, 10);
    line.history.releasing(5, line.at(100), 0);

    const judged_grant late = line.granted(6, 1, 101, 200);
    line.history.releasing(6, line.at(300), 1);
    const judged_grant own = line.granted(7, 1, 301, 400);

    BOOST_TEST((!late.handover && !own.handover));
    BOOST_TEST((late.violation.empty() && own.violation.empty()));
}

BOOST_AUTO_TEST_CASE(a_release_that_failed_measures_nothing_and_allows_everything) {
    line line;
    line.granted(5, 0, 0, 10);
    line.history.releasing(5, line.at(100), 0);
    line.history.release_failed(5);

    const judged_grant next = line.granted(6, 1, 50, 107);

    BOOST_TEST((!next.handover && !next.lateness && next.violation.empty()));
}

BOOST_AUTO_TEST_CASE(after_an_expiry_lateness_counts_from_what_the_holder_trusted) {
    line line;
    line.granted(5, 0, 0, 10);  // trusted until 10'008, ends at 10'009

    const judged_grant next = line.granted(6, 1, 50, 10'030);

    BOOST_REQUIRE((next.lateness && next.stamped_lateness));
    BOOST_TEST((*next.lateness == 22ms));
    BOOST_TEST((*next.stamped_lateness == 20ms));
    BOOST_TEST((!next.is_early && next.violation.empty() && !next.handover));
}

BOOST_AUTO_TEST_CASE(a_renewal_moves_the_end) {
    line line;
    line.granted(5, 0, 0, 10);
    line.history.renewed(5, line.stamp(15'000), line.at(14'999));

    const judged_grant early = line.granted(6, 1, 50, 14'000);

    BOOST_TEST(early.is_early);
    BOOST_TEST(early.violation == "two held it at a time");
}

BOOST_AUTO_TEST_CASE(two_holders_at_a_time_are_found_by_the_stamps_in_either_order_of_arrival) {
    line rising;
    rising.granted(5, 0, 0, 10);
    line late_answer;
    late_answer.granted(6, 1, 0, 20);

    const judged_grant second = rising.granted(6, 1, 5, 20);
    const judged_grant first = late_answer.granted(5, 0, 0, 30);

    BOOST_TEST((second.is_early && second.violation == "two held it at a time"));
    BOOST_TEST((first.is_early && first.violation == "two held it at a time"));
}

BOOST_AUTO_TEST_CASE(an_answer_that_was_overtaken_by_the_next_grant_is_legal_once_its_lease_had_ended) {
    line line;
    line.granted(6, 1, 0, 20'000);
    seen_grant overtaken = line.grant(5, 0, 0, 10);
    overtaken.received_at = line.at(20'100);

    const judged_grant judged = line.history.granted(overtaken);

    BOOST_TEST((!judged.is_early && judged.violation.empty() && !judged.lateness));
    BOOST_TEST(line.history.last_token() == 6);
}

BOOST_AUTO_TEST_CASE(tokens_are_given_once_and_rise_with_the_stamps) {
    line line;
    line.granted(5, 0, 0, 10);
    line.history.releasing(5, line.at(20), 0);

    const judged_grant twice = line.granted(5, 1, 15, 30);
    seen_grant before = line.grant(6, 1, 15, 30);
    before.acquired_at = line.stamp(5);
    const judged_grant fell = line.history.granted(before);

    BOOST_TEST(twice.violation == "a fencing token was given twice");
    BOOST_TEST(fell.violation == "a greater token was granted earlier");
}

BOOST_AUTO_TEST_CASE(the_holder_may_acquire_again) {
    line line;
    line.granted(5, 0, 0, 10);

    const judged_grant again = line.granted(6, 0, 11, 20);

    BOOST_TEST((again.violation.empty() && !again.is_early && !again.lateness && !again.handover));
}

BOOST_AUTO_TEST_CASE(a_handover_is_awaited_while_somebody_asks_and_the_lock_is_free) {
    line line;
    const auto awaited = [&line] { return line.history.is_handover_awaited(line.at(0), line.at(1'000)); };
    line.granted(5, 0, 0, 10);
    line.history.asked();
    BOOST_TEST(!awaited());  // held

    line.history.releasing(5, line.at(999), 0);
    BOOST_TEST(awaited());
    BOOST_TEST(!line.history.is_handover_awaited(line.at(0), line.at(999)));  // of a release outside of that time
    line.history.answered();
    BOOST_TEST(!awaited());  // nobody is there
    line.history.asked();
    line.granted(6, 1, 50, 1'001);
    BOOST_TEST(!awaited());

    BOOST_TEST(line.history.is_handover_awaited(line.at(10'000), line.at(11'000)));  // that lease's end, 10'999
    line.history.releasing(6, line.at(1'002), 0);
    line.history.release_failed(6);
    BOOST_TEST(!line.history.is_handover_awaited(line.at(0), line.at(11'000)));
}

BOOST_AUTO_TEST_CASE(the_recorder_counts_what_was_judged_and_shows_violations_as_errors) {
    line line;
    holdfast::cli::load_recorder recorder;
    recorder.measure(line.at(-1'000), line.at(60'000));
    const auto record = [&](std::int64_t token, std::size_t owner, int asked, int received) {
        const seen_grant grant = line.grant(token, owner, asked, received);
        recorder.granted(grant, line.history.granted(grant));
    };
    record(5, 0, 0, 10);
    line.history.releasing(5, line.at(20), 0);
    record(6, 1, 1, 25);           // handed over
    record(7, 0, 30, 10'100);      // after an expiry
    record(8, 1, 10'100, 10'110);  // while held

    const holdfast::cli::load_report& report = recorder.report();
    BOOST_TEST((report.waiting.grants == 4u && report.waiting.handovers == 1u && report.waiting.expiries == 1u));
    BOOST_TEST((report.waiting.early == 1u && report.waiting.violations == 1u));
    BOOST_TEST(report.errors.at("violation: two held it at a time") == 1u);
    BOOST_TEST((report.latencies.at("handover").highest() == 5ms));
    BOOST_TEST((report.latencies.at("handover_across").highest() == 5ms));
    BOOST_TEST((report.latencies.at("lateness").highest() == 77ms));
    BOOST_TEST((report.latencies.at("stamped_lateness").highest() == 75ms));
}

BOOST_AUTO_TEST_CASE(moments_are_read_as_they_are_written) {
    using holdfast::cli::moment_after;
    const auto moment =
        holdfast::domain::timestamp(std::chrono::sys_days(std::chrono::year(2024) / 2 / 29)) + 86'399'000'123us;
    const std::string body = R"({"at":")" + holdfast::domain::to_rfc3339(moment) + R"(","b":1})";

    BOOST_TEST((moment_after(body, "\"at\":") == moment));
    for (const char* other : {R"({"at":"2024-02-30T00:00:00.000000Z"})", R"({"at":"2024-02-29T00:00:00Z"})",
                              R"({"at":"2024-02-29 00:00:00.000000Z"})", R"({"at":12})", R"({"at":"2024)", "{}",
                              R"({"at":"2024-02-29T00:00:-1.000000Z"})"})
        BOOST_TEST(!moment_after(other, "\"at\":"), other);
}

BOOST_AUTO_TEST_SUITE_END()
