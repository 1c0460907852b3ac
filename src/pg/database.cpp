#include "holdfast/pg/database.hpp"

#include "holdfast/pg/connection_threads.hpp"
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
          queue_(executor, threads_, [] { return std::nullopt; }) {}

    void start(refused_handler on_refused) {
        monitor::events events;
        // Only once the schema fits may anything be prepared against it.
        events.schema_ready = [this] { threads_.start(); };
        events.refused = std::move(on_refused);
        monitor_.emplace(executor_, settings_, texts_, clock_, journal_, std::move(events));
        monitor_->start();
    }

    store::lease_store& store() noexcept { return store_; }
    store::wait_queue& queue() noexcept { return queue_; }

    std::size_t waiting() const { return threads_.waiting(); }

    bool writable() const noexcept { return monitor_ && monitor_->writable() && threads_.connected(); }

    boost::asio::awaitable<void> stop(std::chrono::milliseconds limit) {
        if (monitor_) monitor_->request_stop();
        co_await threads_.stop(limit);
        if (monitor_) monitor_->stop();
    }

private:
    boost::asio::any_io_executor executor_;
    database_settings settings_;
    query_texts texts_;
    domain::journal& journal_;
    database_clock clock_;
    connection_threads threads_;
    threaded_store store_;
    threaded_queue queue_;
    std::optional<monitor> monitor_;  // Last: its thread ends before what it calls.
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

bool database::writable() const noexcept {
    return implementation_->writable();
}

std::size_t database::waiting() const {
    return implementation_->waiting();
}

boost::asio::awaitable<void> database::stop(std::chrono::milliseconds limit) {
    return implementation_->stop(limit);
}

}  // namespace holdfast::pg
