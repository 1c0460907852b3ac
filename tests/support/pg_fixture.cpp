#include "support/pg_fixture.hpp"

#include "holdfast/pg/queries.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <pqxx/pqxx>
#include <unistd.h>

#include <atomic>
#include <sstream>

namespace holdfast::tests {

using std::chrono::milliseconds;

namespace {

template <class Outcome>
boost::asio::awaitable<void> keep_answer(boost::asio::awaitable<domain::result<Outcome>> call,
                                         std::shared_ptr<pending<Outcome>> started) {
    auto answer = co_await std::move(call);
    started->took = std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - started->started);
    started->answer.emplace(std::move(answer));
}

store::deadline node_deadline(milliseconds budget) {
    return std::chrono::steady_clock::now() + budget;
}

}  // namespace

void recording_journal::write(domain::log_level, std::string_view event,
                              std::initializer_list<domain::log_field> fields) noexcept {
    std::ostringstream text;
    for (const domain::log_field& field : fields) {
        text << field.name << '=';
        std::visit([&](const auto& value) { text << value; }, field.value);
        text << ' ';
    }
    const std::scoped_lock lock(mutex_);
    lines_.push_back({std::string(event), text.str()});
}

std::size_t recording_journal::count(std::string_view event) const {
    return lines(event).size();
}

std::vector<std::string> recording_journal::lines(std::string_view event) const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> found;
    for (const line& each : lines_)
        if (each.event == event) found.push_back(each.fields);
    return found;
}

std::string recording_journal::all() const {
    const std::scoped_lock lock(mutex_);
    std::string text;
    for (const line& each : lines_)
        text += each.event + " " + each.fields + "\n";
    return text;
}

std::string fresh_schema_name() {
    static std::atomic<int> last{0};
    return "holdfast " + std::to_string(::getpid()) + "." + std::to_string(++last);
}

pg::database_settings fresh_settings(const postgres_cluster& cluster, const std::string& database) {
    pg::database_settings settings;
    settings.url = cluster.url(database);
    settings.schema = fresh_schema_name();
    return settings;
}

node_database::node_database(pg::database_settings settings, bool wait) : settings_(std::move(settings)) {
    database_ = std::make_unique<pg::database>(context_.get_executor(), settings_, journal_, meter_);
    store::wait_queue::events events;
    events.woken = [this](const auto& places) { woken_.insert(woken_.end(), places.begin(), places.end()); };
    events.surveyed = [this](auto places, auto) {
        surveyed_ = std::move(places);
        ++surveys_;
    };
    database_->queue().listen(std::move(events));
    database_->start([this](std::string reason) { refused_ = std::move(reason); });
    if (wait && !wait_ready()) throw std::runtime_error("the database did not become ready:\n" + journal_.all());
}

node_database::~node_database() {
    stop();
}

void node_database::run_for(milliseconds length) {
    const auto end = std::chrono::steady_clock::now() + length;
    while (std::chrono::steady_clock::now() < end) {
        if (context_.stopped()) context_.restart();
        context_.run_one_until(end);
    }
}

bool node_database::wait_ready(milliseconds limit) {
    return run_until(limit, [&] { return database_->ready(); });
}

void node_database::stop(milliseconds limit) {
    if (stopped_) return;
    stopped_ = true;
    bool ended = false;
    boost::asio::co_spawn(context_, database_->stop(limit), [&](std::exception_ptr) { ended = true; });
    while (!ended)
        run_for(milliseconds(2));
}

template <class Outcome>
std::shared_ptr<pending<Outcome>> node_database::start(boost::asio::awaitable<domain::result<Outcome>> call) {
    auto started = std::make_shared<pending<Outcome>>();
    boost::asio::co_spawn(context_, keep_answer(std::move(call), started), boost::asio::detached);
    run_for(milliseconds(1));
    return started;
}

node_database::pending_acquire node_database::start_acquire(const std::string& name, const std::string& who,
                                                            std::int64_t ttl_seconds) {
    domain::acquire_command command(resource(name), owner(who), seconds(ttl_seconds));
    return start(store().acquire(std::move(command), node_deadline(budget)));
}

std::shared_ptr<pending<domain::renew_outcome>> node_database::start_renew(const std::string& name,
                                                                           const std::string& who) {
    domain::renew_command command(resource(name), owner(who), seconds(30));
    return start(store().renew(std::move(command), node_deadline(budget)));
}

std::shared_ptr<pending<domain::release_result>> node_database::start_release(const std::string& name,
                                                                              const std::string& who) {
    domain::release_command command(resource(name), owner(who));
    return start(store().release(std::move(command), node_deadline(budget)));
}

std::shared_ptr<pending<domain::look_outcome>> node_database::start_look(const std::string& name) {
    domain::look_command command(resource(name));
    return start(store().look(std::move(command), node_deadline(budget)));
}

domain::node_id node_database::must_know_itself() {
    if (!run_until(milliseconds(10'000), [&] { return queue().node().has_value(); }))
        throw std::runtime_error("the node does not know itself:\n" + journal_.all());
    return *queue().node();
}

std::shared_ptr<pending<domain::stand_outcome>> node_database::start_stand(const std::string& name,
                                                                           const std::string& who,
                                                                           std::int64_t ttl_seconds, bool waits,
                                                                           const std::string& key_text) {
    std::optional<domain::idempotency_key> with;
    if (!key_text.empty()) with = key(key_text);
    domain::acquire_command ask(resource(name), owner(who), seconds(ttl_seconds), with);
    std::optional<domain::node_id> node;
    if (waits) node = must_know_itself();
    domain::stand_command command(std::move(ask), node);
    return start(queue().stand(std::move(command), node_deadline(budget)));
}

std::shared_ptr<pending<domain::claim_outcome>> node_database::start_claim(const domain::place& place,
                                                                           const std::string& who,
                                                                           std::int64_t ttl_seconds,
                                                                           const std::string& key_text) {
    std::optional<domain::idempotency_key> with;
    if (!key_text.empty()) with = key(key_text);
    domain::acquire_command ask(place.resource(), owner(who), seconds(ttl_seconds), with);
    domain::claim_command command(place, std::move(ask));
    return start(queue().claim(std::move(command), node_deadline(budget)));
}

std::shared_ptr<pending<domain::withdraw_outcome>> node_database::start_withdraw(const domain::place& place) {
    domain::withdraw_command command(place);
    return start(queue().withdraw(std::move(command), node_deadline(budget)));
}

std::shared_ptr<pending<domain::leave_outcome>> node_database::start_leave(const std::string& name,
                                                                           const std::string& who) {
    domain::leave_command command(resource(name), owner(who));
    return start(queue().leave(std::move(command), node_deadline(budget)));
}

std::shared_ptr<pending<domain::hand_over_outcome>> node_database::start_hand_over(const std::string& name,
                                                                                   std::optional<domain::node_id> at) {
    domain::hand_over_command command(resource(name), at);
    return start(queue().hand_over(std::move(command), node_deadline(budget)));
}

std::shared_ptr<pending<domain::queue_release_outcome>> node_database::start_queue_release(
    const std::string& name, const std::string& who, std::optional<domain::fencing_token> given_back,
    std::optional<domain::node_id> at) {
    domain::release_command release(resource(name), owner(who), given_back);
    domain::queue_release_command command(std::move(release), given_back.has_value(), at);
    return start(queue().release(std::move(command), node_deadline(budget)));
}

domain::place node_database::must_stand(const std::string& name, const std::string& who) {
    const auto outcome = must_end(start_stand(name, who));
    const auto* standing = std::get_if<domain::queue_standing>(&outcome.answer);
    if (!standing) throw std::runtime_error(who + " does not stand in line for " + name);
    return standing->place;
}

domain::lock node_database::must_claim(const domain::place& place, const std::string& who, std::int64_t ttl_seconds,
                                       const std::string& key_text) {
    const auto outcome = must_end(start_claim(place, who, ttl_seconds, key_text));
    const auto* grant = std::get_if<domain::queue_grant>(&outcome);
    if (!grant) throw std::runtime_error(who + " was not granted the lock");
    return grant->lock;
}

struct stranger::session {
    explicit session(const std::string& url) : connection(url) {}

    pqxx::connection connection;
};

stranger::stranger(const pg::database_settings& settings)
    : schema_(settings.schema), session_(std::make_unique<session>(settings.url + "?application_name=stranger")) {
    run("SET statement_timeout = 0");
}

stranger::~stranger() = default;

std::string stranger::run(const std::string& text) {
    pqxx::nontransaction work(session_->connection);
    const pqxx::result result = work.exec(pg::fill_in(text, schema_));
    return result.empty() ? std::string() : std::string(result[0][0].c_str());
}

std::string run_sql(const pg::database_settings& settings, std::string text, const postgres_cluster& cluster,
                    const std::string& database) {
    return cluster.psql(pg::fill_in(text, settings.schema), database);
}

}  // namespace holdfast::tests

// libpqxx 6.4 does not free the result (some 2 KiB) of the statement during which it finds the connection lost.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
    return "leak:pqxx::connection_base::exec_prepared\nleak:pqxx::connection_base::exec_params\n"
           "leak:pqxx::connection_base::register_prepared\n";
}
