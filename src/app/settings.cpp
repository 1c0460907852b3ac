#include "holdfast/app/settings.hpp"

#include "holdfast/domain/limits.hpp"
#include "holdfast/domain/text.hpp"
#include "holdfast/pg/connection_url.hpp"

#include <boost/asio/ip/address.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::app {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr std::string_view listening = "Listening";
constexpr std::string_view database = "Database";
constexpr std::string_view time_limits = "Time limits";
constexpr std::string_view limits = "Limits";
constexpr std::string_view logging = "Logging";

constexpr std::int64_t ten_minutes_in_ms = 600'000;
constexpr std::int64_t day_in_seconds = 86'400;
/// A sweep may remove a row only when no statement that read it can still be running (docs/settings.md).
constexpr int statements_before_sweep = 10;
/// How much longer than the request deadline a write that was sent may still be executed by a stalled database.
constexpr milliseconds outcome_margin{1'000};

template <class Duration>
void add_duration(option_set& options, option_name name, std::string_view unit, std::int64_t min, std::int64_t max,
                  Duration& target) {
    options.add_whole_number(name, unit, min, max, target.count(),
                             [&target](std::int64_t count) { target = Duration(count); });
}

void add_ms(option_set& options, option_name name, std::int64_t min, std::int64_t max, milliseconds& target) {
    add_duration(options, name, "MS", min, max, target);
}

void add_seconds(option_set& options, option_name name, std::int64_t min, std::int64_t max, seconds& target) {
    add_duration(options, name, "SECONDS", min, max, target);
}

template <class Number>
void add_count(option_set& options, option_name name, std::int64_t min, std::int64_t max, Number& target) {
    options.add_whole_number(name, "NUMBER", min, max, static_cast<std::int64_t>(target),
                             [&target](std::int64_t number) { target = static_cast<Number>(number); });
}

void add_listening(option_set& options, settings& target) {
    options.add_text({"listen-address", listening, "IP address to listen on"}, "ADDRESS", target.server.listen_address);
    add_count(options, {"port", listening, "TCP port to listen on; 0 takes any free one"}, 0, 65'535,
              target.server.port);
    options.add_boolean({"allow-anonymous", listening,
                         "Permit an address other than loopback: whoever reaches the node can release any lock"},
                        target.allow_anonymous);
}

void add_database_identity(option_set& options, settings& target) {
    options.add_text({"database-url", database, "Connection string as libpq takes it: URI or keyword=value; required"},
                     "URL", target.database.url);
    options.add_text({"database-schema", database, "Schema that holds the tables"}, "NAME", target.database.schema);
}

void add_database(option_set& options, settings& target) {
    pg::database_settings& settings = target.database;
    add_database_identity(options, target);
    options.add_text({"database-listen-url", database, "The same for LISTEN, past any pooler; without: database-url"},
                     "URL", settings.listen_url);
    add_count(options, {"database-connections", database, "Connections for ordinary commands"}, 1, 64,
              settings.connections);
    options.add_boolean({"prepared-statements", database, "Turn off behind a transaction pooler"},
                        settings.prepared_statements);
    options.add_boolean({"migrate-on-start", database, "Bring the schema up to date when starting"},
                        settings.migrate_on_start);
    add_ms(options, {"reconnect-backoff-max-ms", database, "Longest pause between attempts to connect"}, 1, 60'000,
           settings.reconnect_backoff_max);
    add_seconds(options, {"sweep-after-seconds", database, "Age at which ended leases are removed"}, 1,
                domain::limits::ttl_seconds_max_ceiling, settings.sweep_after);
    add_seconds(options, {"sweep-interval-seconds", database, "Pause between two sweeps"}, 1, day_in_seconds,
                settings.sweep_interval);
}

void add_statement_limits(option_set& options, settings& target) {
    add_ms(options, {"statement-timeout-ms", time_limits, "Longest run of one statement in the database"}, 1,
           ten_minutes_in_ms, target.database.statement_timeout);
    add_ms(options, {"lock-timeout-ms", time_limits, "Longest wait of a statement for a locked row"}, 1,
           ten_minutes_in_ms, target.database.lock_timeout);
    add_seconds(options, {"connect-timeout-seconds", time_limits, "Longest attempt to connect to the database"}, 1, 60,
                target.database.connect_timeout);
}

void add_time_limits(option_set& options, settings& target) {
    add_ms(options, {"request-deadline-ms", time_limits, "Every request is answered within this"}, 1, ten_minutes_in_ms,
           target.request_deadline);
    add_statement_limits(options, target);
    add_ms(options, {"header-deadline-ms", time_limits, "A request's header must arrive whole within this"}, 1,
           ten_minutes_in_ms, target.server.header_deadline);
    add_ms(options, {"body-deadline-ms", time_limits, "A request's body must arrive whole within this"}, 1,
           ten_minutes_in_ms, target.server.body_deadline);
    add_ms(options, {"idle-timeout-ms", time_limits, "A keep-alive connection without a request is closed after this"},
           1, day_in_seconds * 1'000, target.server.idle_timeout);
    add_ms(options, {"drain-delay-ms", time_limits, "Go on serving for this long after SIGTERM, while not ready"}, 0,
           ten_minutes_in_ms, target.drain_delay);
    add_ms(options, {"drain-limit-ms", time_limits, "Then wait this long for open connections to end"}, 0,
           ten_minutes_in_ms, target.drain_limit);
}

void add_limits(option_set& options, settings& target) {
    add_count(options, {"connections-max", limits, "Open client connections"}, 1, 1'000'000,
              target.server.connections_max);
    add_count(options, {"waiters-max", limits, "Requests that wait in line on this node"}, 1, 1'000'000,
              target.waiters_max);
    add_count(options, {"places-per-resource-max", limits, "Places in line for one resource"}, 1, 1'000'000,
              target.database.places_per_resource_max);
    add_count(options, {"queue-max", limits, "Commands that wait for a database connection"}, 1, 1'000'000,
              target.database.queue_max);
    add_count(options, {"batch-rows-max", limits, "Commands in one statement"}, 1, 10'000,
              target.database.batch_rows_max);
    add_count(options, {"max-ttl-seconds", limits, "Longest lease that a client may ask for"}, 1,
              domain::limits::ttl_seconds_max_ceiling, target.server.ttl_seconds_max);
}

constexpr std::array levels{domain::log_level::debug, domain::log_level::info, domain::log_level::warning,
                            domain::log_level::error};

void add_logging(option_set& options, settings& target) {
    std::vector<std::string_view> names;
    names.reserve(levels.size());
    for (const domain::log_level level : levels)
        names.push_back(to_text(level));
    options.add_choice({"log-level", logging, "Least level of the lines that are written"}, std::move(names),
                       static_cast<std::size_t>(target.log_level),
                       [&target](std::size_t chosen) { target.log_level = levels.at(chosen); });
    add_ms(options, {"slow-request-ms", logging, "A request that takes longer is logged"}, 0, ten_minutes_in_ms,
           target.server.slow_request);
}

bool is_loopback(const boost::asio::ip::address& address) {
    if (address.is_v6() && address.to_v6().is_v4_mapped())
        return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, address.to_v6()).is_loopback();
    return address.is_loopback();
}

void check_listening(const settings& target) {
    boost::system::error_code fault;
    const auto address = boost::asio::ip::make_address(target.server.listen_address, fault);
    if (fault)
        throw usage_error("--listen-address: \"" + printable(target.server.listen_address) +
                          "\" is not an IP address (a name is not taken)");
    if (!is_loopback(address) && !target.allow_anonymous)
        throw usage_error("--listen-address: " + address.to_string() +
                          " is not loopback, and whoever reaches the node can release any lock; say --allow-anonymous "
                          "if the network protects it");
}

void check_schema(const std::string& schema) {
    constexpr std::size_t bytes_max = 63;  // NAMEDATALEN - 1
    const auto is_first = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
    const auto is_next = [&](char c) { return is_first(c) || (c >= '0' && c <= '9'); };
    const bool well_formed = !schema.empty() && schema.size() <= bytes_max && is_first(schema.front()) &&
                             std::all_of(schema.begin(), schema.end(), is_next);
    if (!well_formed)
        throw usage_error("--database-schema: \"" + printable(schema) +
                          "\" is not a name of 1 to 63 characters a-z, 0-9 and _ that begins with no digit");
    if (schema.starts_with("pg_") || schema == "information_schema")
        throw usage_error("--database-schema: \"" + schema + "\" belongs to PostgreSQL");
}

void check_database(const pg::database_settings& target) {
    if (domain::trim_ascii_white_space(target.url).empty())
        throw usage_error("--database-url (HOLDFAST_DATABASE_URL) is required");
    if (!pg::describe_without_secrets(target.url))
        throw usage_error(
            "--database-url: not a connection string that libpq can parse; expected "
            "postgresql://USER:PASSWORD@HOST/NAME, "
            "with special characters percent-encoded, or keyword=value pairs");
    if (!target.listen_url.empty() && !pg::describe_without_secrets(target.listen_url))
        throw usage_error("--database-listen-url: not a connection string that libpq can parse, as database-url is");
    check_schema(target.schema);
    if (target.lock_timeout >= target.statement_timeout)
        throw usage_error("--lock-timeout-ms (" + std::to_string(target.lock_timeout.count()) +
                          ") must be below --statement-timeout-ms (" +
                          std::to_string(target.statement_timeout.count()) +
                          "), or a locked row could not be told from a slow statement");
}

void check_deadlines(const settings& target) {
    const milliseconds statement = target.database.statement_timeout;
    if (statement >= target.request_deadline)
        throw usage_error("--statement-timeout-ms (" + std::to_string(statement.count()) +
                          ") must be below --request-deadline-ms (" + std::to_string(target.request_deadline.count()) +
                          "), or requests would be given up before the database says what became of them");
    if (target.database.sweep_after < statements_before_sweep * statement)
        throw usage_error("--sweep-after-seconds (" + std::to_string(target.database.sweep_after.count()) +
                          ") must be at least ten times --statement-timeout-ms (" + std::to_string(statement.count()) +
                          "), or a row could be removed while a statement still judges by it");
}

/// Set by the stacks or for the commands that we run, never settings of a node.
constexpr std::array<std::string_view, 4> foreign_variables{"HOLDFAST_URL", "HOLDFAST_NODE_URLS", "HOLDFAST_NODE_PIDS",
                                                            "HOLDFAST_FENCING_TOKEN"};

bool is_foreign(std::string_view name) {
    return std::find(foreign_variables.begin(), foreign_variables.end(), name) != foreign_variables.end();
}

}  // namespace

void add_node_settings(option_set& options, settings& target) {
    add_listening(options, target);
    add_database(options, target);
    add_time_limits(options, target);
    add_limits(options, target);
    add_logging(options, target);
}

void add_migration_settings(option_set& options, settings& target) {
    add_database_identity(options, target);
    add_statement_limits(options, target);
}

void complete_node_settings(settings& target) {
    check_listening(target);
    check_database(target.database);
    check_deadlines(target);
    target.server.outcome_final_after = target.request_deadline + outcome_margin;
}

void check_migration_settings(const settings& target) {
    check_database(target.database);
}

void check_environment(const char* const* variables) {
    CLI::App scratch;
    settings defaults;
    option_set options(scratch, option_set::environment::none);
    add_node_settings(options, defaults);
    std::vector<std::string> known;
    for (const std::string_view flag : options.flags())
        known.push_back(environment_variable(flag));

    for (; *variables; ++variables) {
        const std::string_view variable = *variables;
        const std::string_view name = variable.substr(0, variable.find('='));
        const bool is_empty = name.size() + 1 >= variable.size();
        if (!name.starts_with("HOLDFAST_") || is_empty || is_foreign(name)) continue;
        if (std::find(known.begin(), known.end(), name) == known.end())
            throw usage_error(printable(name) + " is set, but there is no such setting");
    }
}

void log_settings(domain::journal& journal, const settings& settings) {
    const pg::database_settings& database = settings.database;
    const http::server_settings& server = settings.server;
    const auto number = [](auto count) { return static_cast<std::int64_t>(count); };
    const std::string url = pg::describe_without_secrets(database.url).value_or("***");
    const std::string listen_url =
        database.listen_url.empty() ? "" : pg::describe_without_secrets(database.listen_url).value_or("***");
    journal.write(domain::log_level::info, "settings",
                  {{"listen_address", server.listen_address},
                   {"port", number(server.port)},
                   {"allow_anonymous", settings.allow_anonymous},
                   {"database_url", url},
                   {"database_listen_url", listen_url},
                   {"database_schema", database.schema},
                   {"database_connections", number(database.connections)},
                   {"prepared_statements", database.prepared_statements},
                   {"migrate_on_start", database.migrate_on_start},
                   {"reconnect_backoff_max_ms", number(database.reconnect_backoff_max.count())},
                   {"sweep_after_seconds", number(database.sweep_after.count())},
                   {"sweep_interval_seconds", number(database.sweep_interval.count())},
                   {"request_deadline_ms", number(settings.request_deadline.count())},
                   {"statement_timeout_ms", number(database.statement_timeout.count())},
                   {"lock_timeout_ms", number(database.lock_timeout.count())},
                   {"connect_timeout_seconds", number(database.connect_timeout.count())},
                   {"header_deadline_ms", number(server.header_deadline.count())},
                   {"body_deadline_ms", number(server.body_deadline.count())},
                   {"idle_timeout_ms", number(server.idle_timeout.count())},
                   {"drain_delay_ms", number(settings.drain_delay.count())},
                   {"drain_limit_ms", number(settings.drain_limit.count())},
                   {"connections_max", number(server.connections_max)},
                   {"waiters_max", number(settings.waiters_max)},
                   {"places_per_resource_max", number(database.places_per_resource_max)},
                   {"queue_max", number(database.queue_max)},
                   {"batch_rows_max", number(database.batch_rows_max)},
                   {"max_ttl_seconds", number(server.ttl_seconds_max)},
                   {"log_level", to_text(settings.log_level)},
                   {"slow_request_ms", number(server.slow_request.count())}});
}

std::string_view to_text(domain::log_level level) noexcept {
    switch (level) {
        case domain::log_level::debug:
            return "debug";
        case domain::log_level::info:
            return "info";
        case domain::log_level::warning:
            return "warning";
        case domain::log_level::error:
            return "error";
    }
    return "unknown";
}

}  // namespace holdfast::app
