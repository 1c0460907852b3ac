#include "holdfast/pg/listener.hpp"

#include "holdfast/pg/connection.hpp"
#include "holdfast/pg/queue_rows.hpp"

#include <boost/asio/post.hpp>

#include <fcntl.h>
#include <libpq-fe.h>
#include <sys/socket.h>

#include <algorithm>
#include <random>
#include <utility>

namespace holdfast::pg {

using domain::log_level;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr milliseconds watch_interval{100};
constexpr milliseconds listen_limit{1'000};
constexpr milliseconds backoff_min{50};
/// A beat that was committed so long after the last one that was heard: the one between did not arrive.
constexpr milliseconds silence_max{1'500};

database_settings with_direct_url(database_settings settings) {
    if (!settings.listen_url.empty()) settings.url = settings.listen_url;
    return settings;
}

std::string one_line(std::string message) {
    while (!message.empty() && message.back() == '\n')
        message.pop_back();
    std::replace(message.begin(), message.end(), '\n', ' ');
    return message;
}

struct result_releaser {
    void operator()(PGresult* result) const noexcept { PQclear(result); }
};

struct notification_releaser {
    void operator()(PGnotify* notification) const noexcept { PQfreemem(notification); }
};

void ignore_notice(void*, const PGresult*) {}

}  // namespace

void listener::closer::operator()(pg_conn* session) const noexcept {
    PQfinish(session);
}

listener::listener(boost::asio::any_io_executor executor, const database_settings& settings, domain::journal& journal,
                   events events)
    : executor_(std::move(executor)),
      settings_(with_direct_url(settings)),
      channel_(wake_channel(settings.schema)),
      journal_(journal),
      events_(std::move(events)),
      watch_timer_(executor_) {}

listener::~listener() {
    stop();
}

void listener::start() {
    thread_ = std::thread([this] { run(); });
    watch();
}

void listener::request_stop() {
    {
        const std::scoped_lock lock(mutex_);
        stop_ = true;
    }
    waking_.notify_all();
    alive_.reset();
    watch_timer_.cancel();
    watch_.shut_down_if_running();
    close();
}

void listener::stop() {
    request_stop();
    if (thread_.joinable()) thread_.join();
}

// ---- The I/O thread's side

void listener::watch() {
    const auto now = steady_clock::now();
    watch_.shut_down_if_overdue(now);
    const auto beat = events_.last_beat();
    if (session_ && beat && *beat > heard_at_ + silence_max) lose("own beats are not heard");
    watch_timer_.expires_after(watch_interval);
    watch_timer_.async_wait([this](boost::system::error_code code) {
        if (!code) watch();
    });
}

void listener::adopt(session_ptr session) {
    const int duplicate = ::fcntl(PQsocket(session.get()), F_DUPFD_CLOEXEC, 0);
    if (duplicate < 0) return lose("no descriptor left");
    session_ = std::move(session);
    readable_.emplace(executor_, duplicate);
    heard_at_ = steady_clock::now();
    journal_.write(log_level::debug, "listening_to_nodes", {});
    events_.connected();
    read();  // What came with the answer to LISTEN lies in libpq's buffer; the socket does not tell of it any more.
}

void listener::wait_readable() {
    readable_->async_wait(boost::asio::posix::stream_descriptor::wait_read,
                          [this, alive = std::weak_ptr(alive_)](boost::system::error_code code) {
                              if (!code && !alive.expired() && session_) read();
                          });
}

void listener::read() {
    if (PQconsumeInput(session_.get()) == 0) return lose(one_line(PQerrorMessage(session_.get())));
    std::vector<domain::wake> wakes;
    while (const std::unique_ptr<PGnotify, notification_releaser> each{PQnotifies(session_.get())}) {
        const auto told = parse_wakes(each->extra);
        wakes.insert(wakes.end(), told.begin(), told.end());
    }
    const auto own = events_.node();
    const auto beat = [](const domain::wake& each) { return each.place_number == 0; };
    if (std::any_of(wakes.begin(), wakes.end(), [&](const auto& each) { return beat(each) && each.node == own; }))
        heard_at_ = steady_clock::now();
    std::erase_if(wakes, beat);
    wait_readable();
    if (!wakes.empty()) events_.heard(std::move(wakes));
}

void listener::lose(const std::string& why) {
    close();
    journal_.write(log_level::warning, "listener_lost", {{"message", why}});
    {
        const std::scoped_lock lock(mutex_);
        wanted_ = true;
    }
    waking_.notify_all();
}

void listener::close() {
    if (session_) ::shutdown(PQsocket(session_.get()), SHUT_RDWR);  // So that no farewell can block.
    readable_.reset();
    session_.reset();
}

// ---- The connecting thread's side

void listener::run() {
    std::minstd_rand random(std::random_device{}());
    milliseconds backoff = backoff_min;
    for (;;) {
        {
            std::unique_lock lock(mutex_);
            waking_.wait(lock, [&] { return stop_ || wanted_; });
            if (stop_) return;
        }
        if (session_ptr session = connect()) {
            {
                const std::scoped_lock lock(mutex_);
                wanted_ = false;
            }
            complained_ = false;
            boost::asio::post(executor_, [this, alive = std::weak_ptr(alive_), session = std::move(session)]() mutable {
                if (!alive.expired()) adopt(std::move(session));
            });
        }
        // A session that is lost as soon as it is there must not make this spin.
        if (!pause(milliseconds(std::uniform_int_distribution(backoff.count() / 2, backoff.count())(random)))) return;
        backoff = complained_ ? std::min(backoff * 2, settings_.reconnect_backoff_max) : backoff_min;
    }
}

listener::session_ptr listener::connect() {
    try {
        session_ptr session(PQconnectdb(connection_string(settings_).c_str()));
        if (!session || PQstatus(session.get()) != CONNECTION_OK) {
            complain(session ? one_line(PQerrorMessage(session.get())) : "out of memory");
            return nullptr;
        }
        PQsetNoticeReceiver(session.get(), ignore_notice, nullptr);
        watch_.attach(PQsocket(session.get()));
        watch_.begin(steady_clock::now() + listen_limit);
        const std::unique_ptr<PGresult, result_releaser> result(
            PQexec(session.get(), ("LISTEN " + quoted_identifier(channel_)).c_str()));
        watch_.end();
        watch_.detach();
        if (PQresultStatus(result.get()) == PGRES_COMMAND_OK) return session;
        complain(one_line(PQerrorMessage(session.get())));
    } catch (const std::exception& error) {
        complain(error.what());
    }
    return nullptr;
}

bool listener::pause(milliseconds length) {
    std::unique_lock lock(mutex_);
    return !waking_.wait_for(lock, length, [&] { return stop_; });
}

void listener::complain(const std::string& why) {
    if (!complained_) journal_.write(log_level::warning, "listener_cannot_connect", {{"message", why}});
    complained_ = true;
}

}  // namespace holdfast::pg
