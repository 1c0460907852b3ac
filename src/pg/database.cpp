#include "holdfast/pg/database.hpp"

#include "holdfast/pg/connection_threads.hpp"
#include "holdfast/pg/heartbeat.hpp"
#include "holdfast/pg/listener.hpp"
#include "holdfast/pg/monitor.hpp"
#include "holdfast/pg/sql_backend.hpp"
#include "holdfast/pg/threaded_queue.hpp"
#include "holdfast/pg/threaded_store.hpp"

#include <boost/asio/awaitable.hpp>

namespace holdfast::pg {
namespace {

constexpr std::size_t slow_threads = 2;

thread_settings as_thread_settings(const database_settings& settings) {
    thread_settings result;
    result.fast_threads = settings.connections;
    result.slow_threads = slow_threads;
    result.queue_max = settings.queue_max;
    result.batch_rows_max = settings.batch_rows_max;
    result.lock_timeout = settings.lock_timeout;
    result.reconnect_backoff_max = settings.reconnect_backoff_max;
    return result;
}

}  // namespace

class database::implementation {
public:
    implementation(boost::asio::any_io_executor executor, database_settings settings, domain::journal& journal,
                   meter& meter)
        : executor_(executor),
          settings_(std::move(settings)),
          texts_(settings_.schema),
          journal_(journal),
          threads_(
              executor, as_thread_settings(settings_),
              [this, &meter](socket_watch& watch) {
                  return std::make_unique<sql_backend>(settings_, texts_, clock_, watch, journal_, meter);
              },
              journal, meter),
          store_(threads_),
          queue_(threads_, [this] { return heartbeat_.node(); }),
          heartbeat_(executor, settings_, texts_, journal, heartbeat_events()),
          listener_(executor, settings_, journal, listener_events(meter)) {}

    void start(refused_handler on_refused) {
        monitor::events events;
        // Only once the schema fits may anything be prepared against it.
        events.schema_ready = [this] {
            threads_.start();
            heartbeat_.start();
            listener_.start();
        };
        events.refused = std::move(on_refused);
        monitor_.emplace(executor_, settings_, texts_, clock_, journal_, std::move(events));
        monitor_->start();
    }

    store::lease_store& store() noexcept { return store_; }
    store::wait_queue& queue() noexcept { return queue_; }

    std::size_t waiting() const { return threads_.waiting(); }

    bool ready() const noexcept {
        return monitor_ && monitor_->writable() && threads_.connected() && heartbeat_.last_beat();
    }

    boost::asio::awaitable<void> stop(std::chrono::milliseconds limit) {
        if (monitor_) monitor_->request_stop();
        heartbeat_.request_stop();
        listener_.request_stop();
        co_await threads_.stop(limit);
        heartbeat_.stop();
        listener_.stop();
        if (monitor_) monitor_->stop();
    }

private:
    heartbeat::events heartbeat_events() {
        heartbeat::events events;
        events.surveyed = [this](auto places, auto began) { queue_.surveyed(std::move(places), began); };
        events.wakes = [this](auto wakes) { queue_.announce(std::move(wakes)); };
        return events;
    }

    listener::events listener_events(meter& meter) {
        listener::events events;
        events.heard = [this](const std::vector<domain::wake>& wakes) { heard(wakes); };
        // What was said while nobody listened is found by looking.
        events.connected = [this, &meter, is_first = true]() mutable {
            if (!is_first) meter.listens_again();
            is_first = false;
            heartbeat_.survey_now();
        };
        events.node = [this] { return heartbeat_.node(); };
        events.last_beat = [this] { return heartbeat_.last_beat(); };
        return events;
    }

    void heard(const std::vector<domain::wake>& wakes) {
        const auto own = heartbeat_.node();
        std::vector<std::int64_t> places;
        for (const domain::wake& each : wakes)
            if (each.node == own) places.push_back(each.place_number);
        if (!places.empty()) queue_.woken(std::move(places));
    }

    boost::asio::any_io_executor executor_;
    database_settings settings_;
    query_texts texts_;
    domain::journal& journal_;
    database_clock clock_;
    connection_threads threads_;
    threaded_store store_;
    threaded_queue queue_;
    // The threads of these end before what they call: the later ones call the earlier.
    heartbeat heartbeat_;
    listener listener_;
    std::optional<monitor> monitor_;
};

database::database(boost::asio::any_io_executor executor, database_settings settings, domain::journal& journal,
                   meter& meter)
    : implementation_(std::make_unique<implementation>(std::move(executor), std::move(settings), journal, meter)) {}

database::~database() = default;

void database::start(refused_handler on_refused) {
    implementation_->start(std::move(on_refused));
}

store::lease_store& database::store() noexcept {
    return implementation_->store();
}

store::wait_queue& database::queue() noexcept {
    return implementation_->queue();
}

bool database::ready() const noexcept {
    return implementation_->ready();
}

std::size_t database::waiting() const {
    return implementation_->waiting();
}

boost::asio::awaitable<void> database::stop(std::chrono::milliseconds limit) {
    return implementation_->stop(limit);
}

}  // namespace holdfast::pg
