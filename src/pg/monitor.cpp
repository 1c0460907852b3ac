#include "holdfast/pg/monitor.hpp"

#include "holdfast/pg/session_migration.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <cassert>
#include <random>
#include <utility>

namespace holdfast::pg {

using domain::log_level;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr milliseconds probe_interval{250};
constexpr milliseconds probe_limit{1'000};  ///< A probe that takes longer is a stuck session.
constexpr milliseconds probe_valid{1'500};  ///< How long a good probe counts.
constexpr milliseconds migration_limit{60'000};
constexpr milliseconds backoff_min{50};
constexpr milliseconds statistics_interval{1'000};
constexpr milliseconds sweep_pause{10};    ///< Between steps, so that a sweep never crowds out requests.
constexpr std::int64_t sweep_pages = 512;  ///< 4 MiB a step.
constexpr milliseconds watch_interval{100};
constexpr std::chrono::seconds complaint_interval{10};

std::string row_address(std::int64_t page) {
    return "(" + std::to_string(page) + ",0)";
}

}  // namespace

monitor::monitor(boost::asio::any_io_executor executor, const database_settings& settings, const query_texts& texts,
                 database_clock& clock, domain::journal& journal, events events)
    : executor_(std::move(executor)),
      settings_(settings),
      texts_(texts),
      clock_(clock),
      journal_(journal),
      events_(std::make_shared<monitor::events>(std::move(events))),
      watch_timer_(executor_) {
    // Sweeping earlier could forget a token while a statement that drew an older one is still under way.
    assert(settings.sweep_after >= 10 * settings.statement_timeout);
}

monitor::~monitor() {
    stop();
}

void monitor::start() {
    thread_ = std::thread([this] { run(); });
    watch_socket();
}

void monitor::request_stop() {
    {
        const std::scoped_lock lock(mutex_);
        stop_ = true;
    }
    stopping_.notify_all();
    watch_timer_.cancel();
    watch_.shut_down_if_running();
    *events_ = {};  // A call that was posted and not run yet finds nothing.
}

void monitor::stop() {
    request_stop();
    if (thread_.joinable()) thread_.join();
}

bool monitor::writable() const noexcept {
    return steady_clock::now().time_since_epoch().count() <= writable_until_.load();
}

void monitor::watch_socket() {
    watch_.shut_down_if_overdue(steady_clock::now());
    watch_timer_.expires_after(watch_interval);
    watch_timer_.async_wait([this](boost::system::error_code code) {
        if (!code) watch_socket();
    });
}

bool monitor::pause(milliseconds length) {
    std::unique_lock lock(mutex_);
    return !stopping_.wait_for(lock, length, [&] { return stop_; });
}

void monitor::run() {
    if (!prepare_schema()) return;
    milliseconds backoff = backoff_min;
    std::minstd_rand random(std::random_device{}());
    do {
        try {
            serve_session();
            return;
        } catch (const std::exception& error) {
            watch_.end();
            if (!lost_) backoff = backoff_min;
            found_lost(error.what());
        }
        backoff = std::min(backoff * 2, settings_.reconnect_backoff_max);
    } while (pause(milliseconds(std::uniform_int_distribution(backoff.count() / 2, backoff.count())(random))));
}

bool monitor::prepare_schema() {
    milliseconds backoff = backoff_min;
    for (;;) {
        try {
            check_schema_once();
            boost::asio::post(executor_, [events = events_] {
                if (const auto call = std::exchange(events->schema_ready, {})) call();
            });
            return true;
        } catch (const migration_refused& error) {
            refuse(error.what());
            return false;
        } catch (const std::exception& error) {
            watch_.end();
            found_lost(error.what());
        }
        backoff = std::min(backoff * 2, settings_.reconnect_backoff_max);
        if (!pause(backoff)) return false;
    }
}

void monitor::check_schema_once() {
    watch_.begin(steady_clock::now() + migration_limit);
    if (settings_.migrate_on_start) {
        const migration_report report = migrate(settings_, watch_);
        for (const std::string& name : report.applied)
            journal_.write(log_level::info, "schema_migrated", {{"migration", name}});
        if (!report.warning.empty())
            journal_.write(log_level::warning, "statement_timeout_not_set", {{"message", report.warning}});
    } else if (schema_version(settings_, watch_) < static_cast<int>(known_migrations().size())) {
        throw migration_error("the schema is older than this binary, or absent: run `holdfast migrate`");
    }
    watch_.end();
}

void monitor::refuse(std::string reason) {
    boost::asio::post(executor_, [events = events_, reason = std::move(reason)] {
        // Moved out first: the call may stop the monitor, which forgets its events.
        if (const auto call = std::exchange(events->refused, {})) call(reason);
    });
}

/// Returns when the monitor is to stop; throws when the session is lost or no use.
void monitor::serve_session() {
    watch_.begin(steady_clock::now() + settings_.connect_timeout + probe_limit);
    connection session(settings_, texts_, watch_);
    session.prepare({query::probe, query::analyze, query::sweep});
    auto probe_due = steady_clock::now();
    milliseconds rest{0};
    do {
        if (steady_clock::now() >= probe_due) {
            probe(session);
            probe_due = steady_clock::now() + probe_interval;
        }
        if (sweep_page_ || steady_clock::now() >= sweep_due_) sweep_step(session);
        rest = sweep_page_ ? sweep_pause : std::chrono::ceil<milliseconds>(probe_due - steady_clock::now());
    } while (pause(std::max(rest, milliseconds(0))));
}

void monitor::probe(connection& session) {
    const auto sent = steady_clock::now();
    watch_.begin(sent + probe_limit);
    const pqxx::result result = session.run(query::probe, {});
    watch_.end();
    clock_.read(result[0]["clock_us"].as<std::int64_t>(), sent, steady_clock::now());
    // Another session may reach a primary, or see a default that was changed: read-only-ness is settled when a session
    // starts.
    if (!result[0]["writable"].as<bool>())
        throw std::runtime_error("the database is read-only, or this role may not write to the table of locks");
    check_timeout(result[0]["statement_timeout_ms"].as<std::int64_t>());
    found_writable();
    if (result[0]["outgrown"].as<bool>() && steady_clock::now() >= statistics_allowed_) take_statistics(session);
}

void monitor::take_statistics(connection& session) {
    statistics_allowed_ = steady_clock::now() + statistics_interval;
    watch_.begin(steady_clock::now() + settings_.statement_timeout + probe_limit);
    try {
        session.run(query::analyze, {});
        journal_.write(log_level::debug, "statistics_taken", {});
    } catch (const statement_error& error) {
        if (session.broken()) throw;
        journal_.write(log_level::warning, "statistics_not_taken", {{"sqlstate", error.sqlstate()}});
    }
    watch_.end();
}

void monitor::check_timeout(std::int64_t statement_timeout_ms) {
    if (statement_timeout_ms == settings_.statement_timeout.count()) return;
    // The session that migrates opened before the role's limit was set; this one opened after.
    if (timeout_warned_ms_ == statement_timeout_ms) return;
    timeout_warned_ms_ = statement_timeout_ms;
    journal_.write(
        log_level::warning, "statement_timeout_differs",
        {{"session_ms", statement_timeout_ms}, {"setting_ms", std::int64_t{settings_.statement_timeout.count()}}});
}

void monitor::sweep_step(connection& session) {
    const std::int64_t page = sweep_page_.value_or(0);
    watch_.begin(steady_clock::now() + settings_.statement_timeout + probe_limit);
    const pqxx::result result = session.run(
        query::sweep, {row_address(page), row_address(page + sweep_pages),
                       std::to_string(settings_.sweep_after.count()), "holdfast sweep " + settings_.schema});
    watch_.end();
    swept_rows_ += result[0]["deleted"].as<std::int64_t>();
    const bool mine = result[0]["mine"].as<bool>();
    if (mine && page + sweep_pages < result[0]["pages"].as<std::int64_t>()) {
        sweep_page_ = page + sweep_pages;
        return;
    }
    if (mine) journal_.write(log_level::debug, "sweep_done", {{"rows", swept_rows_}});
    sweep_page_.reset();
    swept_rows_ = 0;
    sweep_due_ = steady_clock::now() + settings_.sweep_interval;
}

void monitor::found_writable() {
    writable_until_.store((steady_clock::now() + probe_valid).time_since_epoch().count());
    if (!lost_) return;
    lost_ = false;
    complain_again_ = {};
    journal_.write(log_level::info, "database_connected", {});
}

void monitor::found_lost(const std::string& why) {
    writable_until_.store(steady_time::min().time_since_epoch().count());
    const auto now = steady_clock::now();
    if (!lost_) journal_.write(log_level::warning, "database_lost", {{"message", why}});
    if (lost_ && now >= complain_again_) journal_.write(log_level::warning, "database_unreachable", {{"message", why}});
    if (!lost_ || now >= complain_again_) complain_again_ = now + complaint_interval;
    lost_ = true;
}

}  // namespace holdfast::pg
