#ifndef HOLDFAST_APP_PROMETHEUS_METRICS_HPP
#define HOLDFAST_APP_PROMETHEUS_METRICS_HPP

#include "holdfast/app/metered_queue.hpp"
#include "holdfast/http/metrics.hpp"
#include "holdfast/pg/meter.hpp"

#include <array>
#include <functional>
#include <memory>
#include <string>

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
class Registry;
}  // namespace prometheus

namespace holdfast::app {

/// What a binary is called.
struct build_name {
    std::string version;
    std::string commit;
};

/// What is not counted but asked for when a page is made.
struct node_state {
    bool ready = false;
    std::size_t commands_waiting = 0;
    std::size_t waiters = 0;
};

/// The metrics of a node. Every series exists from the start and none is added later: labels have closed sets of
/// values, none comes from a request. Counting finds its series by index, without a lookup.
class prometheus_metrics final : public http::metrics, public pg::meter, public queue_meter {
public:
    explicit prometheus_metrics(const build_name& build);
    ~prometheus_metrics() override;

    /// Who is asked for the state, on the I/O thread, each time a page is made. Without: not ready, nothing waits.
    void ask_state(std::function<node_state()> state) { state_ = std::move(state); }

    // http::metrics
    void answered(std::optional<http::operation> asked, int status,
                  std::chrono::nanoseconds duration) noexcept override;
    void answered_after_wait(int status, std::chrono::nanoseconds duration) noexcept override;
    void connection_opened() noexcept override;
    void connection_closed() noexcept override;
    std::string page() override;

    // pg::meter
    void batch_run(store::command_kind kind, pg::lane lane, std::size_t rows,
                   std::chrono::nanoseconds duration) noexcept override;
    void followers_answered(std::size_t commands) noexcept override;
    void passed_on(std::size_t leases) noexcept override;
    void slow_lane_entered(std::size_t commands) noexcept override;
    void failed(pg::failure_class why) noexcept override;
    void reconnected() noexcept override;
    void listens_again() noexcept override;

    // queue_meter
    void queue_answered(queue_event event) noexcept override;
    void handed_over_after(std::chrono::nanoseconds duration) noexcept override;
    void notified(std::size_t places) noexcept override;

    /// The statuses that are told apart; every other is counted as "other".
    static constexpr std::array statuses{200, 204, 400, 401, 403, 404, 405, 408, 413,
                                         414, 415, 417, 422, 429, 431, 500, 503};

private:
    using counter = prometheus::Counter*;
    using gauge = prometheus::Gauge*;
    using histogram = prometheus::Histogram*;

    /// One route's series. Behind the routes stand acquires that asked to wait, and requests that meant no route.
    struct route_series {
        std::array<counter, statuses.size() + 1> answers;
        histogram duration;
    };
    struct batch_series {
        histogram rows;
        histogram duration;
    };
    struct process_series {
        counter cpu_seconds;
        gauge resident_bytes;
        gauge open_descriptors;
        gauge descriptors_max;
        gauge start_time;
    };
    static constexpr std::size_t lanes = 2;
    static constexpr std::size_t waiting_route = http::operations;
    static constexpr std::size_t unmatched_route = http::operations + 1;

    void add_http_series();
    void add_batch_series();
    void add_database_series();
    void add_queue_series();
    void count_answer(std::size_t route_index, int status, std::chrono::nanoseconds duration) noexcept;
    void add_process_series(const build_name& build);
    void read_figures();

    std::unique_ptr<prometheus::Registry> registry_;
    std::function<node_state()> state_;

    std::array<route_series, http::operations + 2> routes_;
    gauge connections_;
    std::array<std::array<batch_series, lanes>, store::command_kinds> batches_;
    counter followers_;
    counter passed_on_;
    counter slow_lane_;
    std::array<counter, pg::failure_classes> failures_;
    counter reconnects_;
    std::array<counter, queue_events> queue_answers_;
    histogram hand_overs_;
    counter places_notified_;
    counter listener_reconnects_;
    gauge waiters_;
    gauge ready_;
    gauge waiting_;
    process_series process_;
};

}  // namespace holdfast::app

#endif
