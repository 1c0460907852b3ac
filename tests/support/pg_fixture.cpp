#include "support/pg_fixture.hpp"

#include "holdfast/pg/queries.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include <unistd.h>

#include <atomic>
#include <sstream>

namespace holdfast::tests {

using std::chrono::milliseconds;

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
    database_ = std::make_unique<pg::database>(context_.get_executor(), settings_, journal_);
    database_->start([this](std::string reason) { refused_ = std::move(reason); });
    if (wait && !wait_writable()) throw std::runtime_error("the database did not become writable:\n" + journal_.all());
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

bool node_database::wait_writable(milliseconds limit) {
    return run_until(limit, [&] { return database_->writable(); });
}

void node_database::stop(milliseconds limit) {
    if (stopped_) return;
    stopped_ = true;
    bool ended = false;
    boost::asio::co_spawn(context_, database_->stop(limit), [&](std::exception_ptr) { ended = true; });
    while (!ended)
        run_for(milliseconds(2));
}

std::string run_sql(const pg::database_settings& settings, std::string text, const postgres_cluster& cluster,
                    const std::string& database) {
    return cluster.psql(pg::fill_in(text, settings.schema), database);
}

}  // namespace holdfast::tests
