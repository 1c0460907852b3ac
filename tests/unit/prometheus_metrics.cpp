#include "holdfast/app/prometheus_metrics.hpp"

#include "holdfast/http/problem.hpp"

#include "support/metrics_page.hpp"

#include <boost/test/unit_test.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

namespace {

using namespace holdfast;
using namespace std::chrono_literals;
using holdfast::tests::metrics_page;
using store::command_kind;

struct fixture {
    app::prometheus_metrics metrics{{"1.2.3", "abc"}};

    metrics_page page() { return metrics_page(metrics.page()); }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(prometheus_metrics, fixture)

BOOST_AUTO_TEST_CASE(counting_adds_no_series) {
    const auto before = page().series();
    for (std::size_t meant = 0; meant < http::operations; ++meant)
        for (int status = 0; status < 1000; ++status)
            metrics.answered(static_cast<http::operation>(meant), status, 1ms);
    metrics.answered(std::nullopt, 404, 1ms);
    for (int status = 0; status < 1000; ++status)
        metrics.answered_after_wait(status, 1ms);
    for (std::size_t event = 0; event < app::queue_events; ++event)
        metrics.queue_answered(static_cast<app::queue_event>(event));
    metrics.notified(7);
    metrics.handed_over_after(100s);
    metrics.listens_again();
    metrics.connection_opened();
    for (std::size_t kind = 0; kind < store::command_kinds; ++kind)
        for (const auto lane : {pg::lane::fast, pg::lane::slow})
            metrics.batch_run(static_cast<command_kind>(kind), lane, 5000, 100s);
    for (std::size_t why = 0; why < pg::failure_classes; ++why)
        metrics.failed(static_cast<pg::failure_class>(why));
    metrics.followers_answered(3);
    metrics.passed_on(2);
    metrics.slow_lane_entered(4);
    metrics.reconnected();
    BOOST_TEST(page().series() == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_answer_is_counted_by_route_and_status) {
    metrics.answered(http::operation::acquire, 200, 3ms);
    metrics.answered(http::operation::acquire, 200, 20s);
    metrics.answered(http::operation::acquire, 299, 1us);
    metrics.answered(std::nullopt, 404, 1ms);
    const auto now = page();
    BOOST_TEST(now.value(R"(holdfast_http_requests_total{route="acquire",status="200"})") == 2);
    BOOST_TEST(now.value(R"(holdfast_http_requests_total{route="acquire",status="other"})") == 1);
    BOOST_TEST(now.value(R"(holdfast_http_requests_total{route="unmatched",status="404"})") == 1);
    BOOST_TEST(now.sum("holdfast_http_requests_total") == 4);
    BOOST_TEST(now.value(R"(holdfast_http_request_duration_seconds_bucket{route="acquire",le="0.00025"})") == 1);
    BOOST_TEST(now.value(R"(holdfast_http_request_duration_seconds_bucket{route="acquire",le="0.0025"})") == 1);
    BOOST_TEST(now.value(R"(holdfast_http_request_duration_seconds_bucket{route="acquire",le="0.005"})") == 2);
    BOOST_TEST(now.value(R"(holdfast_http_request_duration_seconds_bucket{route="acquire",le="10"})") == 2);
    BOOST_TEST(now.value(R"(holdfast_http_request_duration_seconds_bucket{route="acquire",le="+Inf"})") == 3);
    BOOST_TEST(now.value(R"(holdfast_http_request_duration_seconds_sum{route="acquire"})") == 20.003001,
               boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(every_status_of_a_problem_is_told_apart) {
    const auto& known = app::prometheus_metrics::statuses;
    for (const auto& type : http::problem_types())
        BOOST_TEST((std::find(known.begin(), known.end(), type.status) != known.end()), type.name);
}

BOOST_AUTO_TEST_CASE(a_batch_is_counted_by_kind_and_lane) {
    metrics.batch_run(command_kind::renew, pg::lane::fast, 3, 2ms);
    metrics.batch_run(command_kind::renew, pg::lane::fast, 1024, 2ms);
    metrics.batch_run(command_kind::renew, pg::lane::slow, 1, 2ms);
    const auto now = page();
    BOOST_TEST(now.value(R"(holdfast_batch_rows_bucket{kind="renew",lane="fast",le="2"})") == 0);
    BOOST_TEST(now.value(R"(holdfast_batch_rows_bucket{kind="renew",lane="fast",le="4"})") == 1);
    BOOST_TEST(now.value(R"(holdfast_batch_rows_bucket{kind="renew",lane="fast",le="1024"})") == 2);
    BOOST_TEST(now.value(R"(holdfast_batch_rows_sum{kind="renew",lane="fast"})") == 1027);
    BOOST_TEST(now.value(R"(holdfast_batch_rows_sum{kind="renew",lane="slow"})") == 1);
    BOOST_TEST(now.sum("holdfast_batch_rows_count") == 3);
    BOOST_TEST(now.value(R"(holdfast_batch_duration_seconds_sum{kind="renew",lane="fast"})") == 0.004,
               boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(each_failure_has_a_series_of_its_own) {
    for (std::size_t why = 0; why < pg::failure_classes; ++why) {
        const double before = page().sum("holdfast_database_failures_total");
        metrics.failed(static_cast<pg::failure_class>(why));
        BOOST_TEST(page().sum("holdfast_database_failures_total") == before + 1);
    }
    const auto now = page();
    std::size_t named = 0;
    for (const auto& series : now.series()) {
        if (!series.starts_with("holdfast_database_failures_total")) continue;
        BOOST_TEST(now.value(series) == 1, series);
        BOOST_TEST((series.find("\"\"") == std::string::npos), series);
        ++named;
    }
    BOOST_TEST(named == pg::failure_classes);
    BOOST_TEST(now.value(R"(holdfast_database_failures_total{class="connection_lost"})") == 1);
}

BOOST_AUTO_TEST_CASE(each_answer_of_a_queue_has_a_series_of_its_own) {
    for (std::size_t event = 0; event < app::queue_events; ++event)
        metrics.queue_answered(static_cast<app::queue_event>(event));
    const auto now = page();
    std::size_t named = 0;
    for (const auto& series : now.series()) {
        if (!series.starts_with("holdfast_queue_commands_total")) continue;
        BOOST_TEST(now.value(series) == 1, series);
        BOOST_TEST((series.find("\"\"") == std::string::npos), series);
        ++named;
    }
    BOOST_TEST(named == app::queue_events);
    metrics.queue_answered(app::queue_event::claim_granted);
    BOOST_TEST(page().value(R"(holdfast_queue_commands_total{command="claim",result="granted"})") == 2);
}

BOOST_AUTO_TEST_CASE(requests_that_wait_are_told_apart) {
    metrics.answered_after_wait(200, 45s);
    const auto now = page();
    BOOST_TEST(now.value(R"(holdfast_http_requests_total{route="acquire_waiting",status="200"})") == 1);
    BOOST_TEST(now.value(R"(holdfast_http_request_duration_seconds_bucket{route="acquire_waiting",le="30"})") == 0);
    BOOST_TEST(now.value(R"(holdfast_http_request_duration_seconds_bucket{route="acquire_waiting",le="50"})") == 1);
    BOOST_TEST(now.sum("holdfast_http_requests_total", {"route=\"acquire\""}) == 0);
}

BOOST_AUTO_TEST_CASE(the_rest_is_counted) {
    metrics.connection_opened();
    metrics.connection_opened();
    metrics.connection_closed();
    metrics.followers_answered(3);
    metrics.passed_on(2);
    metrics.slow_lane_entered(4);
    metrics.reconnected();
    metrics.notified(5);
    metrics.listens_again();
    metrics.handed_over_after(2ms);
    const auto now = page();
    BOOST_TEST(now.value("holdfast_listener_reconnects_total") == 1);
    BOOST_TEST(now.value(R"(holdfast_hand_over_duration_seconds_bucket{le="0.0025"})") == 1);
    BOOST_TEST(now.value("holdfast_places_notified_total") == 5);
    BOOST_TEST(now.value("holdfast_http_connections_open") == 1);
    BOOST_TEST(now.value("holdfast_followers_answered_total") == 3);
    BOOST_TEST(now.value("holdfast_leases_passed_on_total") == 2);
    BOOST_TEST(now.value("holdfast_slow_lane_entered_total") == 4);
    BOOST_TEST(now.value("holdfast_database_reconnects_total") == 1);
    BOOST_TEST(now.value(R"(holdfast_build_info{commit="abc",version="1.2.3"})") == 1);
}

BOOST_AUTO_TEST_CASE(the_state_is_asked_for_each_page) {
    BOOST_TEST(page().value("holdfast_ready") == 0);
    app::node_state state{true, 17, 3};
    metrics.ask_state([&] { return state; });
    BOOST_TEST(page().value("holdfast_ready") == 1);
    BOOST_TEST(page().value("holdfast_commands_waiting") == 17);
    BOOST_TEST(page().value("holdfast_waiters") == 3);
    state = {false, 0, 0};
    BOOST_TEST(page().value("holdfast_ready") == 0);
    BOOST_TEST(page().value("holdfast_commands_waiting") == 0);
}

BOOST_AUTO_TEST_CASE(the_process_is_measured) {
    const auto first = page();
    const int descriptor = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const auto second = page();
    ::close(descriptor);
    BOOST_TEST(second.value("process_open_fds") == first.value("process_open_fds") + 1);
    BOOST_TEST(page().value("process_open_fds") == first.value("process_open_fds"));
    const auto listed = std::filesystem::directory_iterator("/proc/self/fd");
    // The iterator's own descriptor is open while it lists.
    BOOST_TEST(first.value("process_open_fds") == std::distance(begin(listed), end(listed)) - 1);
    BOOST_TEST(first.value("process_max_fds") >= first.value("process_open_fds"));
    BOOST_TEST(first.value("process_resident_memory_bytes") > 1e6);
    BOOST_TEST(first.value("process_cpu_seconds_total") > 0);
    BOOST_TEST(second.value("process_cpu_seconds_total") >= first.value("process_cpu_seconds_total"));
    const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
    const double started = first.value("process_start_time_seconds");
    // A test process is minutes old at most.
    BOOST_TEST((started > now - 3600 && started < now + 1), started - now);
    BOOST_TEST(second.value("process_start_time_seconds") == started);
}

BOOST_AUTO_TEST_CASE(counts_of_several_threads_add_up) {
    constexpr int threads = 4;
    constexpr int times = 5'000;
    {
        std::vector<std::jthread> counting;
        for (int i = 0; i < threads; ++i)
            counting.emplace_back([&] {
                for (int n = 0; n < times; ++n) {
                    metrics.batch_run(command_kind::acquire, pg::lane::fast, 2, 1ms);
                    metrics.failed(pg::failure_class::deadlock);
                }
            });
    }
    BOOST_TEST(page().sum("holdfast_batch_rows_sum") == 2 * threads * times);
    BOOST_TEST(page().sum("holdfast_database_failures_total") == threads * times);
}

BOOST_AUTO_TEST_SUITE_END()
