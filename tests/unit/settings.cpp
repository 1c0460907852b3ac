#include "holdfast/app/settings.hpp"

#include "holdfast/app/arguments.hpp"
#include "holdfast/app/logging.hpp"
#include "holdfast/pg/connection_url.hpp"

#include <boost/json/parse.hpp>
#include <boost/test/unit_test.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace holdfast;
using namespace std::chrono_literals;

namespace {

using variables = std::map<std::string, std::string>;

constexpr const char* some_url = "postgresql://holdfast@127.0.0.1/holdfast";

/// Sets variables of this process, and takes them away again.
class environment {
public:
    explicit environment(const variables& given) : given_(given) {
        for (const auto& [name, value] : given_)
            ::setenv(name.c_str(), value.c_str(), 1);
    }
    ~environment() {
        for (const auto& [name, value] : given_)
            ::unsetenv(name.c_str());
    }
    environment(const environment&) = delete;
    environment& operator=(const environment&) = delete;

private:
    variables given_;
};

/// What `holdfast serve` makes of these arguments, up to and including the checks.
app::settings read(std::vector<std::string> arguments, const variables& given = {}) {
    const environment in_force(given);
    CLI::App command;
    app::settings settings;
    app::option_set options(command, app::option_set::environment::variables);
    app::add_node_settings(options, settings);
    std::vector<const char*> argv{"serve"};
    for (const std::string& argument : arguments)
        argv.push_back(argument.c_str());
    BOOST_REQUIRE(app::parse_arguments(command, static_cast<int>(argv.size()), argv.data()));
    options.read();
    app::complete_node_settings(settings);
    return settings;
}

app::settings read_with_url(std::vector<std::string> arguments, const variables& given = {}) {
    arguments.push_back(std::string("--database-url=") + some_url);
    return read(std::move(arguments), given);
}

/// The refusal that they lead to; fails the test if there is none.
std::string refusal(std::vector<std::string> arguments, const variables& given = {}) {
    try {
        read_with_url(std::move(arguments), given);
    } catch (const app::usage_error& error) {
        const std::string line = error.what();
        BOOST_TEST(line.find('\n') == std::string::npos, "one line: " << line);
        return line;
    }
    BOOST_ERROR("accepted");
    return "";
}

bool mentions(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

std::vector<std::string> flags_of_a_node() {
    CLI::App command;
    app::settings settings;
    app::option_set options(command, app::option_set::environment::variables);
    app::add_node_settings(options, settings);
    std::vector<std::string> flags;
    for (const std::string_view flag : options.flags())
        flags.emplace_back(flag);
    return flags;
}

void check_variables(std::vector<const char*> given) {
    given.push_back(nullptr);
    app::check_environment(given.data());
}

/// Keeps the last line that was written.
class last_line final : public domain::journal {
public:
    void write(domain::log_level level, std::string_view event,
               std::initializer_list<domain::log_field> fields) noexcept override {
        line = app::format_line(domain::timestamp{}, level, event, fields);
    }

    std::string line;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(settings)

BOOST_AUTO_TEST_CASE(defaults_are_those_of_the_reference) {
    const app::settings settings = read_with_url({});

    BOOST_TEST(settings.server.listen_address == "127.0.0.1");
    BOOST_TEST(settings.server.port == 8080);
    BOOST_TEST(!settings.allow_anonymous);
    BOOST_TEST(settings.server.connections_max == 20'000u);
    BOOST_TEST((settings.server.header_deadline == 10s && settings.server.body_deadline == 10s));
    BOOST_TEST((settings.server.idle_timeout == 75s && settings.server.slow_request == 1s));
    BOOST_TEST(settings.server.ttl_seconds_max == 86'400);
    BOOST_TEST(settings.database.schema == "holdfast");
    BOOST_TEST(settings.database.connections == 2u);
    BOOST_TEST((settings.database.prepared_statements && settings.database.migrate_on_start));
    BOOST_TEST((settings.database.statement_timeout == 4s && settings.database.lock_timeout == 1s));
    BOOST_TEST((settings.database.connect_timeout == 2s && settings.database.reconnect_backoff_max == 1s));
    BOOST_TEST(settings.database.queue_max == 10'000u);
    BOOST_TEST(settings.database.listen_url.empty());
    BOOST_TEST(settings.database.places_per_resource_max == 1'000u);
    BOOST_TEST(settings.waiters_max == 10'000u);
    BOOST_TEST(settings.database.batch_rows_max == 128u);
    BOOST_TEST((settings.database.sweep_after == 900s && settings.database.sweep_interval == 60s));
    BOOST_TEST((settings.request_deadline == 5s && settings.drain_delay == 2s && settings.drain_limit == 10s));
    BOOST_TEST((settings.log_level == domain::log_level::info));
}

BOOST_AUTO_TEST_CASE(flags_variables_and_their_order_of_precedence) {
    BOOST_TEST(read_with_url({"--port", "9000"}).server.port == 9000);
    BOOST_TEST(read_with_url({"--port=0"}).server.port == 0);
    BOOST_TEST(read_with_url({}, {{"HOLDFAST_PORT", "9001"}}).server.port == 9001);
    BOOST_TEST(read_with_url({"--port=9002"}, {{"HOLDFAST_PORT", "9001"}}).server.port == 9002);
    BOOST_TEST(read_with_url({}, {{"HOLDFAST_PORT", ""}}).server.port == 8080);
    BOOST_TEST(read({}, {{"HOLDFAST_DATABASE_URL", some_url}}).database.url == some_url);
    BOOST_TEST((read_with_url({"--log-level=debug"}).log_level == domain::log_level::debug));
    BOOST_TEST((read_with_url({}, {{"HOLDFAST_LOG_LEVEL", "error"}}).log_level == domain::log_level::error));
}

BOOST_AUTO_TEST_CASE(booleans_can_be_said_in_every_usual_way) {
    BOOST_TEST(!read_with_url({"--prepared-statements=false"}).database.prepared_statements);
    BOOST_TEST(!read_with_url({"--migrate-on-start", "off"}).database.migrate_on_start);
    BOOST_TEST(!read_with_url({}, {{"HOLDFAST_PREPARED_STATEMENTS", "0"}}).database.prepared_statements);
    BOOST_TEST(read_with_url({"--prepared-statements"}, {{"HOLDFAST_PREPARED_STATEMENTS", "no"}})
                   .database.prepared_statements);
    BOOST_TEST(read_with_url({"--allow-anonymous", "--port=1"}).allow_anonymous);
    BOOST_TEST(mentions(refusal({"--allow-anonymous=maybe"}), "neither true nor false"));
    BOOST_TEST(mentions(refusal({}, {{"HOLDFAST_MIGRATE_ON_START", "2"}}), "HOLDFAST_MIGRATE_ON_START"));
}

BOOST_AUTO_TEST_CASE(numbers_are_decimal_and_in_range) {
    for (const char* text : {"65536", "-1", "+1", "0x50", "1e3", "8080.0", " 80", "80 ", "99999999999999999999"}) {
        BOOST_TEST(mentions(refusal({std::string("--port=") + text}), "whole number from 0 to 65535"), text);
        BOOST_TEST(mentions(refusal({}, {{"HOLDFAST_PORT", text}}), "HOLDFAST_PORT"), text);
    }
    BOOST_TEST(read_with_url({"--port=010"}).server.port == 10);  // not octal
    BOOST_TEST(mentions(refusal({"--database-connections=0"}), "from 1 to 64"));
    BOOST_TEST(mentions(refusal({"--log-level=loud"}), "debug, info, warning, error"));
}

BOOST_AUTO_TEST_CASE(unknown_repeated_and_unfinished_arguments_are_refused_without_showing_values) {
    const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
        {{"--databse-url", "postgresql://u:sesame@h/d"}, "unknown option --databse-url"},
        {{"--pasword=sesame"}, "unknown option --pasword"},
        {{"sesame"}, "an argument that is no option"},
        {{"--port=1", "--port=2"}, "--port"},
        {{"--database-schema="}, "--database-schema has no value"},
        {{"--allow-anonymous="}, "--allow-anonymous has no value"},
        {{"--port"}, "--port (HOLDFAST_PORT) has no value"},
        {{"--port", "--database-schema=sesame"}, "--port (HOLDFAST_PORT) has no value"},
    };
    for (const auto& [arguments, reason] : cases) {
        const std::string line = refusal(arguments);
        BOOST_TEST(mentions(line, reason), line);
        BOOST_TEST(!mentions(line, "sesame"), line);
    }
}

BOOST_AUTO_TEST_CASE(contradictory_settings_are_refused) {
    const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
        {{"--statement-timeout-ms=5000"}, "below --request-deadline-ms"},
        {{"--request-deadline-ms=4000"}, "below --request-deadline-ms"},
        {{"--lock-timeout-ms=4000"}, "below --statement-timeout-ms"},
        {{"--sweep-after-seconds=39"}, "ten times --statement-timeout-ms"},
        {{"--listen-address=0.0.0.0"}, "--allow-anonymous"},
        {{"--listen-address=::"}, "--allow-anonymous"},
        {{"--listen-address=::ffff:10.0.0.1"}, "--allow-anonymous"},
        {{"--listen-address=localhost"}, "not an IP address"},
        {{"--listen-address= "}, "not an IP address"},
    };
    for (const auto& [arguments, reason] : cases) {
        const std::string line = refusal(arguments);
        BOOST_TEST(mentions(line, reason), line);
    }
}

BOOST_AUTO_TEST_CASE(what_only_just_fits_is_taken) {
    BOOST_TEST((read_with_url({"--statement-timeout-ms=4999"}).database.statement_timeout == 4'999ms));
    BOOST_TEST((read_with_url({"--lock-timeout-ms=3999"}).database.lock_timeout == 3'999ms));
    BOOST_TEST((read_with_url({"--sweep-after-seconds=40"}).database.sweep_after == 40s));
    for (const char* address : {"127.0.0.2", "::1", "::ffff:127.0.0.1"})
        BOOST_TEST(read_with_url({"--listen-address", address}).server.listen_address == address);
    BOOST_TEST(read_with_url({"--listen-address=0.0.0.0", "--allow-anonymous"}).allow_anonymous);
}

BOOST_AUTO_TEST_CASE(the_database_must_be_named_and_its_schema_well_formed) {
    BOOST_CHECK_EXCEPTION(read({}), app::usage_error,
                          [](const auto& error) { return mentions(error.what(), "is required"); });
    BOOST_CHECK_EXCEPTION(read({"--database-url= "}), app::usage_error,
                          [](const auto& error) { return mentions(error.what(), "is required"); });
    for (const char* schema :
         {" ", "Upper", "1st", "with space", "quo\"te", "pg_locks", "information_schema", "h-f", "\xC3\xA4"})
        BOOST_TEST(mentions(refusal({std::string("--database-schema=") + schema}), "--database-schema"), schema);
    BOOST_TEST(mentions(refusal({"--database-schema=" + std::string(64, 'a')}), "63"));
    const std::string longest(63, 'a');
    BOOST_TEST(read_with_url({"--database-schema=" + longest}).database.schema == longest);
    BOOST_TEST(read_with_url({"--database-schema=_tenant_7"}).database.schema == "_tenant_7");
}

BOOST_AUTO_TEST_CASE(a_url_that_cannot_be_parsed_is_refused_without_showing_it) {
    for (const char* url :
         {"mysql://u:sesame@h/d", "host=h passwort=sesame", "host=h password='sesame", "sesame",
          "postgresql://u:sesame@h/d?nosuch=1", "postgresql://u:sesame%zz@h/d", "password=open sesame"})
        BOOST_CHECK_EXCEPTION(read({"--database-url", url}), app::usage_error, [](const app::usage_error& error) {
            return mentions(error.what(), "--database-url") && !mentions(error.what(), "sesame");
        });
}

BOOST_AUTO_TEST_CASE(the_time_after_which_an_outcome_is_final_follows_the_request_deadline) {
    BOOST_TEST((read_with_url({}).server.outcome_final_after == 6s));
    BOOST_TEST((read_with_url({"--request-deadline-ms=8000"}).server.outcome_final_after == 9s));
}

BOOST_AUTO_TEST_CASE(variables_that_are_no_settings_are_refused) {
    check_variables({"PATH=/bin", "HOLDFAST_PORT=8080", "HOLDFAST_URL=u", "HOLDFAST_NODE_URLS=u u",
                     "HOLDFAST_NODE_PIDS=1", "HOLDFAST_FENCING_TOKEN=7", "HOLDFAST_TYPO=", "HOLDFASTER=1"});
    for (const std::string& flag : flags_of_a_node()) {
        const std::string variable = app::environment_variable(flag) + "=1";
        check_variables({variable.c_str()});
    }
    for (const char* variable : {"HOLDFAST_PROT=8081", "HOLDFAST_port=8081", "HOLDFAST_=1"})
        BOOST_CHECK_THROW(check_variables({variable}), app::usage_error);
}

BOOST_AUTO_TEST_CASE(migrate_takes_database_settings_only_and_checks_only_these) {
    CLI::App command;
    app::settings settings;
    app::option_set options(command, app::option_set::environment::variables);
    app::add_migration_settings(options, settings);

    const std::vector<std::string_view> flags = options.flags();

    BOOST_TEST((flags == std::vector<std::string_view>{"database-url", "database-schema", "statement-timeout-ms",
                                                       "lock-timeout-ms", "connect-timeout-seconds"}));
    BOOST_CHECK_THROW(app::check_migration_settings(settings), app::usage_error);
    settings.database.url = some_url;
    settings.database.statement_timeout =
        20s;  // above the default request deadline, which is none of migrate's business
    app::check_migration_settings(settings);
}

BOOST_AUTO_TEST_CASE(no_form_of_a_password_is_shown) {
    for (const char* url : {
             "postgresql://app:sesame@db.example:5433/locks?sslmode=require",
             "postgres://app:s%65same@db.example/locks",
             "postgresql://app@db.example/locks?password=sesame&sslpassword=sesame",
             "postgresql://db.example/locks?user=app&password=sesame",
             "host=db.example user=app password=sesame dbname=locks",
             "host=db.example user=app password = 'open sesame' dbname=locks",
             "host=db.example user=app password='it\\'s sesame' dbname=locks",
             "host=db.example user=app password=sesame\\ two dbname=locks",
             "host=db.example user=app dbname=locks options='-c app.key=sesame'",
             "postgresql://app:pa@sesame@db.example/locks",
             "postgresql://app:pa/sesame@db.example/locks",
             "dbname=postgresql://app:sesame@db.example/locks",
         }) {
        const std::optional<std::string> shown = pg::describe_without_secrets(url);

        BOOST_REQUIRE_MESSAGE(shown, url);
        BOOST_TEST(!mentions(*shown, "sesame"), url << " -> " << *shown);
        BOOST_TEST(!mentions(*shown, "two"), url << " -> " << *shown);
    }
}

BOOST_AUTO_TEST_CASE(what_is_no_secret_is_shown) {
    BOOST_TEST(pg::describe_without_secrets("postgresql://app:sesame@db.example:5433/locks?sslmode=require").value() ==
               "user=app password=*** dbname=locks host=db.example port=5433 sslmode=require");
    BOOST_TEST(pg::describe_without_secrets("host='/run/data base' user=me@example").value() ==
               "user=me@example host='/run/data base'");
    BOOST_TEST(!pg::describe_without_secrets("no connection string"));
}

BOOST_AUTO_TEST_CASE(the_line_settings_holds_every_setting_and_no_secret) {
    app::settings settings = read({"--database-url=postgresql://app:sesame@db.example/locks", "--port=9000"});
    last_line journal;

    app::log_settings(journal, settings);

    BOOST_TEST(!mentions(journal.line, "sesame"));
    const boost::json::object line = boost::json::parse(journal.line).as_object();
    BOOST_TEST(line.at("event").as_string() == "settings");
    BOOST_TEST(line.at("port").as_int64() == 9000);
    const std::vector<std::string> flags = flags_of_a_node();
    for (std::string name : flags) {
        std::replace(name.begin(), name.end(), '-', '_');
        BOOST_TEST(line.contains(name), name);
    }
    BOOST_TEST(line.size() == flags.size() + 3);  // time, level, event
}

BOOST_AUTO_TEST_CASE(help_shows_each_setting_with_variable_and_default_even_if_a_variable_is_broken) {
    const environment broken(variables{{"HOLDFAST_PORT", "no number"}});
    CLI::App command;
    app::settings settings;
    app::option_set options(command, app::option_set::environment::variables);
    app::add_node_settings(options, settings);
    std::vector<std::string> arguments{"--help"};

    BOOST_CHECK_THROW(command.parse(std::move(arguments)), CLI::CallForHelp);

    const std::string help = command.help();
    for (const std::string& flag : flags_of_a_node()) {
        BOOST_TEST(mentions(help, "--" + flag), flag);
        BOOST_TEST(mentions(help, app::environment_variable(flag)), flag);
    }
    for (const char* group : {"Listening:", "Database:", "Time limits:", "Limits:", "Logging:"})
        BOOST_TEST(mentions(help, group), group);
    BOOST_TEST(mentions(help, "MS=5000 [1 to 600000]"));
}

BOOST_AUTO_TEST_CASE(the_reference_has_each_setting_with_its_default) {
    std::ifstream file(HOLDFAST_SOURCE_DIR "/docs/settings.md");
    std::stringstream text;
    text << file.rdbuf();
    CLI::App command;
    app::settings settings;
    app::option_set options(command, app::option_set::environment::variables);
    app::add_node_settings(options, settings);

    for (const std::string_view flag : options.flags()) {
        const std::string shown = command.get_option("--" + std::string(flag))->get_option_text();
        const std::size_t equals = shown.find('=');
        const std::string fallback =
            equals == std::string::npos ? "none" : shown.substr(equals + 1, shown.find(' ', equals) - equals - 1);
        const std::string heading = "### " + std::string(flag) + "\n";
        const std::size_t at = text.str().find(heading);
        BOOST_REQUIRE_MESSAGE(at != std::string::npos, flag);
        const std::string section = text.str().substr(at, text.str().find("\n##", at + 3) - at);
        BOOST_TEST(mentions(section, "Default: " + fallback), flag << " " << fallback);
        BOOST_TEST(mentions(section, app::environment_variable(flag)), flag);
    }
}

BOOST_AUTO_TEST_SUITE_END()
