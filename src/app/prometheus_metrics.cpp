#include "holdfast/app/prometheus_metrics.hpp"

#include "holdfast/app/process_figures.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>

namespace holdfast::app {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Histogram;

const Histogram::BucketBoundaries seconds_buckets{0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                  0.1,     0.25,   0.5,   1,      2.5,   5,    10};
/// Behind those of other requests, up to the longest wait and the request deadline.
const Histogram::BucketBoundaries wait_buckets{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                               1,     2.5,    5,     10,   20,    30,   50,  60};
const Histogram::BucketBoundaries rows_buckets{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};

double as_seconds(std::chrono::nanoseconds duration) {
    return std::chrono::duration<double>(duration).count();
}

std::string label_of(http::operation meant) {
    switch (meant) {
        case http::operation::acquire:
            return "acquire";
        case http::operation::look:
            return "look";
        case http::operation::release:
            return "release";
        case http::operation::renew:
            return "renew";
        case http::operation::leave:
            return "leave";
        case http::operation::health:
            return "health";
        case http::operation::readiness:
            return "readiness";
        case http::operation::openapi:
            return "openapi";
        case http::operation::problem_type:
            return "problem_type";
        case http::operation::metrics:
            return "metrics";
    }
    return {};
}

std::string label_of(store::command_kind kind) {
    switch (kind) {
        case store::command_kind::acquire:
            return "acquire";
        case store::command_kind::renew:
            return "renew";
        case store::command_kind::release:
            return "release";
        case store::command_kind::look:
            return "look";
        case store::command_kind::queue:
            return "queue";
        case store::command_kind::announce:
            return "announce";
    }
    return {};
}

std::string label_of(pg::lane lane) {
    switch (lane) {
        case pg::lane::fast:
            return "fast";
        case pg::lane::slow:
            return "slow";
    }
    return {};
}

std::string label_of(pg::failure_class why) {
    switch (why) {
        case pg::failure_class::cannot_connect:
            return "cannot_connect";
        case pg::failure_class::connection_lost:
            return "connection_lost";
        case pg::failure_class::row_locked:
            return "row_locked";
        case pg::failure_class::timed_out:
            return "timed_out";
        case pg::failure_class::deadlock:
            return "deadlock";
        case pg::failure_class::serialization:
            return "serialization";
        case pg::failure_class::read_only:
            return "read_only";
        case pg::failure_class::out_of_resources:
            return "out_of_resources";
        case pg::failure_class::constraint:
            return "constraint";
        case pg::failure_class::refused:
            return "refused";
        case pg::failure_class::not_understood:
            return "not_understood";
        case pg::failure_class::other:
            return "other";
    }
    return {};
}

struct queue_labels {
    const char* command;
    const char* result;
};

queue_labels labels_of(queue_event event) {
    switch (event) {
        case queue_event::stand_granted:
            return {"stand", "granted"};
        case queue_event::stand_standing:
            return {"stand", "standing"};
        case queue_event::stand_refused:
            return {"stand", "refused"};
        case queue_event::stand_full:
            return {"stand", "full"};
        case queue_event::stand_failed:
            return {"stand", "failed"};
        case queue_event::claim_granted:
            return {"claim", "granted"};
        case queue_event::claim_not_offered:
            return {"claim", "not_offered"};
        case queue_event::claim_gone:
            return {"claim", "gone"};
        case queue_event::claim_failed:
            return {"claim", "failed"};
        case queue_event::withdraw_kept:
            return {"withdraw", "kept"};
        case queue_event::withdraw_gone:
            return {"withdraw", "gone"};
        case queue_event::withdraw_failed:
            return {"withdraw", "failed"};
        case queue_event::leave_left:
            return {"leave", "left"};
        case queue_event::leave_not_found:
            return {"leave", "not_found"};
        case queue_event::leave_failed:
            return {"leave", "failed"};
        case queue_event::hand_over_offered:
            return {"hand_over", "offered"};
        case queue_event::hand_over_early:
            return {"hand_over", "early"};
        case queue_event::hand_over_free:
            return {"hand_over", "free"};
        case queue_event::hand_over_failed:
            return {"hand_over", "failed"};
        case queue_event::release_released:
            return {"release", "released"};
        case queue_event::release_not_found:
            return {"release", "not_found"};
        case queue_event::release_forbidden:
            return {"release", "forbidden"};
        case queue_event::release_failed:
            return {"release", "failed"};
        case queue_event::give_back_released:
            return {"give_back", "released"};
        case queue_event::give_back_late:
            return {"give_back", "late"};
        case queue_event::give_back_failed:
            return {"give_back", "failed"};
    }
    return {"", ""};
}

/// The label of the value at this place of a closed enumeration.
template <class Enumeration>
std::string label_at(std::size_t index) {
    return label_of(static_cast<Enumeration>(index));
}

}  // namespace

prometheus_metrics::prometheus_metrics(const build_name& build) : registry_(std::make_unique<prometheus::Registry>()) {
    add_http_series();
    add_batch_series();
    add_database_series();
    add_queue_series();
    add_process_series(build);
}

prometheus_metrics::~prometheus_metrics() = default;

void prometheus_metrics::add_http_series() {
    auto& answers = BuildCounter()
                        .Name("holdfast_http_requests_total")
                        .Help("Requests answered, by what was asked and the status.")
                        .Register(*registry_);
    auto& durations = BuildHistogram()
                          .Name("holdfast_http_request_duration_seconds")
                          .Help("From the first byte of a request to its answer.")
                          .Register(*registry_);
    for (std::size_t index = 0; index < routes_.size(); ++index) {
        const std::string route = index == waiting_route     ? "acquire_waiting"
                                  : index == unmatched_route ? "unmatched"
                                                             : label_at<http::operation>(index);
        for (std::size_t place = 0; place < statuses.size(); ++place)
            routes_[index].answers[place] =
                &answers.Add({{"route", route}, {"status", std::to_string(statuses[place])}});
        routes_[index].answers[statuses.size()] = &answers.Add({{"route", route}, {"status", "other"}});
        routes_[index].duration =
            &durations.Add({{"route", route}}, index == waiting_route ? wait_buckets : seconds_buckets);
    }
    connections_ = &BuildGauge()
                        .Name("holdfast_http_connections_open")
                        .Help("Connections that are served now.")
                        .Register(*registry_)
                        .Add({});
}

void prometheus_metrics::add_batch_series() {
    auto& rows = BuildHistogram()
                     .Name("holdfast_batch_rows")
                     .Help("Commands in one batch on a database session.")
                     .Register(*registry_);
    auto& durations = BuildHistogram()
                          .Name("holdfast_batch_duration_seconds")
                          .Help("How long a database session was busy with one batch.")
                          .Register(*registry_);
    for (std::size_t kind = 0; kind < store::command_kinds; ++kind) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const prometheus::Labels labels{{"kind", label_at<store::command_kind>(kind)},
                                            {"lane", label_at<pg::lane>(lane)}};
            batches_[kind][lane] = {&rows.Add(labels, rows_buckets), &durations.Add(labels, seconds_buckets)};
        }
    }
    followers_ = &BuildCounter()
                      .Name("holdfast_followers_answered_total")
                      .Help("Commands answered from the outcome of another on the same resource.")
                      .Register(*registry_)
                      .Add({});
    passed_on_ = &BuildCounter()
                      .Name("holdfast_leases_passed_on_total")
                      .Help("Leases that went from a release to the acquire behind it in one statement.")
                      .Register(*registry_)
                      .Add({});
    slow_lane_ = &BuildCounter()
                      .Name("holdfast_slow_lane_entered_total")
                      .Help("Commands that met a row locked by somebody else and went to the slow lane.")
                      .Register(*registry_)
                      .Add({});
    waiting_ = &BuildGauge()
                    .Name("holdfast_commands_waiting")
                    .Help("Commands that wait for a database session now.")
                    .Register(*registry_)
                    .Add({});
}

void prometheus_metrics::add_database_series() {
    auto& failures = BuildCounter()
                         .Name("holdfast_database_failures_total")
                         .Help("Statements that failed and sessions that could not be opened, by class.")
                         .Register(*registry_);
    for (std::size_t index = 0; index < failures_.size(); ++index)
        failures_[index] = &failures.Add({{"class", label_at<pg::failure_class>(index)}});
    reconnects_ = &BuildCounter()
                       .Name("holdfast_database_reconnects_total")
                       .Help("Database sessions that were open before and were opened again.")
                       .Register(*registry_)
                       .Add({});
    ready_ = &BuildGauge().Name("holdfast_ready").Help("1 while /readyz says so, else 0.").Register(*registry_).Add({});
}

void prometheus_metrics::add_queue_series() {
    auto& answers = BuildCounter()
                        .Name("holdfast_queue_commands_total")
                        .Help("Commands on queues of waiters, by what they were and how they were answered.")
                        .Register(*registry_);
    for (std::size_t index = 0; index < queue_answers_.size(); ++index) {
        const queue_labels labels = labels_of(static_cast<queue_event>(index));
        queue_answers_[index] = &answers.Add({{"command", labels.command}, {"result", labels.result}});
    }
    hand_overs_ =
        &BuildHistogram()
             .Name("holdfast_hand_over_duration_seconds")
             .Help("From when a lease was known to have ended by itself until the lock was offered to a waiter.")
             .Register(*registry_)
             .Add({}, seconds_buckets);
    listener_reconnects_ = &BuildCounter()
                                .Name("holdfast_listener_reconnects_total")
                                .Help("Times that the session which hears notifications was opened again.")
                                .Register(*registry_)
                                .Add({});
    places_notified_ = &BuildCounter()
                            .Name("holdfast_places_notified_total")
                            .Help("Places in line that notifications have named to this node.")
                            .Register(*registry_)
                            .Add({});
    waiters_ = &BuildGauge()
                    .Name("holdfast_waiters")
                    .Help("Requests that wait in line on this node now.")
                    .Register(*registry_)
                    .Add({});
}

void prometheus_metrics::add_process_series(const build_name& build) {
    BuildGauge()
        .Name("holdfast_build_info")
        .Help("1, with what this binary is called.")
        .Register(*registry_)
        .Add({{"version", build.version}, {"commit", build.commit}})
        .Set(1);
    const auto add_gauge = [this](const char* name, const char* help) {
        return &BuildGauge().Name(name).Help(help).Register(*registry_).Add({});
    };
    process_.cpu_seconds = &BuildCounter()
                                .Name("process_cpu_seconds_total")
                                .Help("User and system processor time in seconds.")
                                .Register(*registry_)
                                .Add({});
    process_.resident_bytes = add_gauge("process_resident_memory_bytes", "Resident memory in bytes.");
    process_.open_descriptors = add_gauge("process_open_fds", "Open file descriptors.");
    process_.descriptors_max = add_gauge("process_max_fds", "How many file descriptors may be open.");
    process_.start_time = add_gauge("process_start_time_seconds", "Start of the process, in Unix time.");
}

void prometheus_metrics::answered(std::optional<http::operation> asked, int status,
                                  std::chrono::nanoseconds duration) noexcept {
    count_answer(asked ? static_cast<std::size_t>(*asked) : unmatched_route, status, duration);
}

void prometheus_metrics::answered_after_wait(int status, std::chrono::nanoseconds duration) noexcept {
    count_answer(waiting_route, status, duration);
}

void prometheus_metrics::count_answer(std::size_t route_index, int status, std::chrono::nanoseconds duration) noexcept {
    const route_series& route = routes_[route_index];
    const auto place = std::find(statuses.begin(), statuses.end(), status) - statuses.begin();
    route.answers[static_cast<std::size_t>(place)]->Increment();
    route.duration->Observe(as_seconds(duration));
}

void prometheus_metrics::connection_opened() noexcept {
    connections_->Increment();
}

void prometheus_metrics::connection_closed() noexcept {
    connections_->Decrement();
}

void prometheus_metrics::batch_run(store::command_kind kind, pg::lane lane, std::size_t rows,
                                   std::chrono::nanoseconds duration) noexcept {
    const batch_series& series = batches_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(lane)];
    series.rows->Observe(static_cast<double>(rows));
    series.duration->Observe(as_seconds(duration));
}

void prometheus_metrics::followers_answered(std::size_t commands) noexcept {
    followers_->Increment(static_cast<double>(commands));
}

void prometheus_metrics::passed_on(std::size_t leases) noexcept {
    passed_on_->Increment(static_cast<double>(leases));
}

void prometheus_metrics::slow_lane_entered(std::size_t commands) noexcept {
    slow_lane_->Increment(static_cast<double>(commands));
}

void prometheus_metrics::failed(pg::failure_class why) noexcept {
    failures_[static_cast<std::size_t>(why)]->Increment();
}

void prometheus_metrics::reconnected() noexcept {
    reconnects_->Increment();
}

void prometheus_metrics::queue_answered(queue_event event) noexcept {
    queue_answers_[static_cast<std::size_t>(event)]->Increment();
}

void prometheus_metrics::handed_over_after(std::chrono::nanoseconds duration) noexcept {
    hand_overs_->Observe(as_seconds(duration));
}

void prometheus_metrics::listens_again() noexcept {
    listener_reconnects_->Increment();
}

void prometheus_metrics::notified(std::size_t places) noexcept {
    places_notified_->Increment(static_cast<double>(places));
}

std::string prometheus_metrics::page() {
    read_figures();
    return prometheus::TextSerializer().Serialize(registry_->Collect());
}

void prometheus_metrics::read_figures() {
    const node_state state = state_ ? state_() : node_state{};
    ready_->Set(state.ready ? 1 : 0);
    waiting_->Set(static_cast<double>(state.commands_waiting));
    waiters_->Set(static_cast<double>(state.waiters));
    const process_figures figures = read_process_figures();
    process_.cpu_seconds->Increment(figures.cpu_seconds - process_.cpu_seconds->Value());
    process_.resident_bytes->Set(figures.resident_bytes);
    process_.open_descriptors->Set(figures.open_descriptors);
    process_.descriptors_max->Set(figures.descriptors_max);
    process_.start_time->Set(figures.start_time_seconds);
}

}  // namespace holdfast::app
