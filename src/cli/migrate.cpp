#include "holdfast/pg/migrate.hpp"

#include "holdfast/app/arguments.hpp"
#include "holdfast/app/settings.hpp"
#include "holdfast/cli/subcommands.hpp"

#include <CLI/CLI.hpp>
#include <unistd.h>

#include <iostream>

namespace holdfast::cli {
namespace {

void bring_up_to_date(const pg::database_settings& database) {
    const pg::migration_report report = pg::migrate(database);
    for (const std::string& name : report.applied)
        std::cout << "applied " << name << '\n';
    std::cout << "schema " << database.schema << " is at version " << report.schema_version
              << (report.applied.empty() ? ", nothing was left to apply" : "") << '\n';
    if (!report.warning.empty()) std::cerr << "holdfast migrate: warning: " << report.warning << '\n';
}

void move_tokens_ahead(const pg::database_settings& database) {
    const pg::token_advance_report report = pg::advance_tokens(database);
    std::cout << "the greatest fencing token was " << report.previous_token << "; grants now begin at "
              << report.next_token << '\n';
}

}  // namespace

int migrate(int argc, char** argv) {
    CLI::App command("Bring the database's schema up to date: forward only, safe to repeat and to run on many nodes.",
                     "holdfast migrate");
    app::settings settings;
    app::option_set options(command, app::option_set::environment::variables);
    app::add_migration_settings(options, settings);
    bool is_advancing = false;
    command.add_flag("--advance-tokens", is_advancing,
                     "Also move the fencing tokens ahead of all that may have been granted; after a restore");
    if (!app::parse_arguments(command, argc, argv)) return 0;
    app::check_environment(environ);
    options.read();
    app::check_migration_settings(settings);
    try {
        bring_up_to_date(settings.database);
        if (is_advancing) move_tokens_ahead(settings.database);
    } catch (const pg::migration_error& error) {
        std::cerr << "holdfast migrate: " << error.what() << '\n';
        return 1;
    }
    return 0;
}

}  // namespace holdfast::cli
