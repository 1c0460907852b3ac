#include "holdfast/pg/heartbeat.hpp"

#include "holdfast/pg/queue_rows.hpp"
#include "holdfast/store/wait_queue.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <random>
#include <stdexcept>
#include <utility>

namespace holdfast::pg {

using domain::log_level;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr milliseconds beat_interval{1'000};
constexpr milliseconds beat_limit{1'000};  ///< A beat that takes longer comes from a stuck session.
constexpr milliseconds backoff_min{50};
constexpr milliseconds watch_interval{100};
constexpr std::chrono::seconds tidy_interval{10};
constexpr int tidied_resources_max = 100;
/// A node stops taking itself for living a little before the others do.
constexpr milliseconds certain_life = store::node_dead_after - milliseconds(500);

steady_clock::time_point moment_of(steady_clock::rep ticks) {
    return steady_clock::time_point(steady_clock::duration(ticks));
}

domain::surveyed_place place_of(const pqxx::row& row) {
    auto resource = domain::resource_name::parse(row[0].c_str());
    if (!resource) throw std::logic_error("a resource in the database is no resource name");
    domain::place place(std::move(*resource), row[1].as<std::int64_t>(), row[2].as<std::int64_t>());
    const std::chrono::microseconds left(row[4].as<std::int64_t>());
    return domain::surveyed_place(std::move(place), *row[3].c_str() == 't', std::chrono::ceil<milliseconds>(left));
}

}  // namespace

heartbeat::heartbeat(boost::asio::any_io_executor executor, const database_settings& settings, const query_texts& texts,
                     domain::journal& journal, events events)
    : executor_(std::move(executor)),
      settings_(settings),
      texts_(texts),
      journal_(journal),
      events_(std::make_shared<heartbeat::events>(std::move(events))),
      watch_timer_(executor_),
      channel_(wake_channel(settings.schema)) {}

heartbeat::~heartbeat() {
    stop();
}

void heartbeat::start() {
    thread_ = std::thread([this] { run(); });
    watch_socket();
}

void heartbeat::request_stop() {
    {
        const std::scoped_lock lock(mutex_);
        stop_ = true;
    }
    waking_.notify_all();
    watch_timer_.cancel();
    watch_.shut_down_if_running();
    *events_ = {};  // A call that was posted and not run yet finds nothing.
}

void heartbeat::stop() {
    request_stop();
    if (thread_.joinable()) thread_.join();
}

void heartbeat::survey_now() {
    {
        const std::scoped_lock lock(mutex_);
        survey_asked_ = true;
    }
    waking_.notify_all();
}

std::optional<domain::node_id> heartbeat::node() const noexcept {
    const auto node = node_.load();
    if (node == 0 || steady_clock::now() > moment_of(taken_as_sent_.load()) + certain_life) return std::nullopt;
    return static_cast<domain::node_id>(node);
}

std::optional<heartbeat::steady_time> heartbeat::last_beat() const noexcept {
    const auto ticks = last_beat_.load();
    return ticks == 0 ? std::nullopt : std::optional(moment_of(ticks));
}

void heartbeat::watch_socket() {
    if (watch_.shut_down_if_overdue(steady_clock::now()))
        journal_.write(log_level::warning, "stuck_heartbeat_shut_down", {});
    watch_timer_.expires_after(watch_interval);
    watch_timer_.async_wait([this](boost::system::error_code code) {
        if (!code) watch_socket();
    });
}

/// False when the heartbeat is to stop. Ends early when a survey is asked for.
bool heartbeat::pause_until(steady_time moment) {
    std::unique_lock lock(mutex_);
    waking_.wait_until(lock, moment, [&] { return stop_ || survey_asked_; });
    return !stop_;
}

void heartbeat::run() {
    milliseconds backoff = backoff_min;
    std::minstd_rand random(std::random_device{}());
    const auto stopped = [&] {
        const std::scoped_lock lock(mutex_);
        return stop_;
    };
    while (!stopped()) {
        try {
            serve_session();
            return;
        } catch (const std::exception& error) {
            watch_.end();
            if (!lost_) backoff = backoff_min;
            if (!stopped()) found_lost(error.what());
        }
        const auto end = steady_clock::now() +
                         milliseconds(std::uniform_int_distribution(backoff.count() / 2, backoff.count())(random));
        backoff = std::min(backoff * 2, settings_.reconnect_backoff_max);
        std::unique_lock lock(mutex_);
        waking_.wait_until(lock, end, [&] { return stop_; });
    }
}

/// Returns when the heartbeat is to stop; throws when the session is lost.
void heartbeat::serve_session() {
    watch_.begin(steady_clock::now() + settings_.connect_timeout + beat_limit);
    connection session(settings_, texts_, watch_);
    session.prepare({query::draw_node, query::beat, query::survey, query::tidy_queue});
    watch_.end();
    if (node_.load() == 0) draw_node(session);
    auto beat_due = steady_clock::now();
    do {
        const auto now = steady_clock::now();
        if (now >= beat_due) {
            beat(session);
            beat_due = std::max(beat_due + beat_interval, now);
        }
        survey(session);
        if (now >= tidy_due_) tidy(session);
    } while (pause_until(beat_due));
}

void heartbeat::draw_node(connection& session) {
    const auto sent = steady_clock::now();
    watch_.begin(sent + beat_limit);
    const pqxx::result result = session.run(query::draw_node, {});
    watch_.end();
    taken_as_sent_.store(sent.time_since_epoch().count());
    node_.store(result[0][0].as<std::int64_t>());
    journal_.write(log_level::info, "node_known", {{"node", node_.load()}});
}

void heartbeat::beat(connection& session) {
    const auto sent = steady_clock::now();
    watch_.begin(sent + beat_limit);
    session.run(query::beat, {std::to_string(node_.load()), channel_});
    watch_.end();
    taken_as_sent_.store(sent.time_since_epoch().count());
    last_beat_.store(steady_clock::now().time_since_epoch().count());
    if (lost_) journal_.write(log_level::info, "heartbeat_again", {});
    lost_ = false;
}

void heartbeat::survey(connection& session) {
    {
        const std::scoped_lock lock(mutex_);
        survey_asked_ = false;
    }
    const auto began = steady_clock::now();
    watch_.begin(began + beat_limit);
    const pqxx::result result = session.run(query::survey, {std::to_string(node_.load())});
    watch_.end();
    std::vector<domain::surveyed_place> places;
    places.reserve(static_cast<std::size_t>(result.size()));
    for (const pqxx::row& row : result)
        places.push_back(place_of(row));
    boost::asio::post(executor_, [events = events_, places = std::move(places), began]() mutable {
        if (events->surveyed) events->surveyed(std::move(places), began);
    });
}

void heartbeat::tidy(connection& session) {
    tidy_due_ = steady_clock::now() + tidy_interval;
    watch_.begin(steady_clock::now() + settings_.statement_timeout + beat_limit);
    try {
        const pqxx::result result = session.run(query::tidy_queue, {std::to_string(tidied_resources_max)});
        const auto resources = result[0]["resources"].as<std::int64_t>();
        if (resources > 0) journal_.write(log_level::debug, "queues_tidied", {{"resources", resources}});
        if (resources == tidied_resources_max) tidy_due_ = steady_clock::now();  // There is more.
        auto wakes = parse_wakes(result[0]["wakes"].c_str());
        boost::asio::post(executor_, [events = events_, wakes = std::move(wakes)]() mutable {
            if (events->wakes && !wakes.empty()) events->wakes(std::move(wakes));
        });
    } catch (const statement_error& error) {
        if (session.broken()) throw;
        journal_.write(log_level::warning, "queues_not_tidied", {{"sqlstate", error.sqlstate()}});
    }
    watch_.end();
}

void heartbeat::found_lost(const std::string& why) {
    if (!lost_) journal_.write(log_level::warning, "heartbeat_lost", {{"message", why}});
    lost_ = true;
}

}  // namespace holdfast::pg
