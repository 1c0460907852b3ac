#include "holdfast/app/arguments.hpp"
#include "holdfast/app/logging.hpp"
#include "holdfast/app/node.hpp"
#include "holdfast/app/settings.hpp"
#include "holdfast/cli/subcommands.hpp"

#include <CLI/CLI.hpp>
#include <unistd.h>

namespace holdfast::cli {

int serve(int argc, char** argv) {
    CLI::App command(
        "Run a node: leases over HTTP on PostgreSQL. Each option may also be given as the variable beside it.",
        "holdfast serve");
    app::settings settings;
    app::option_set options(command, app::option_set::environment::variables);
    app::add_node_settings(options, settings);
    if (!app::parse_arguments(command, argc, argv)) return 0;
    app::check_environment(environ);
    options.read();
    app::complete_node_settings(settings);

    app::log_journal journal(settings.log_level, STDOUT_FILENO);
    journal.write(domain::log_level::info, "starting",
                  {{"version", std::string_view(HOLDFAST_VERSION)},
                   {"commit", std::string_view(HOLDFAST_COMMIT)},
                   {"pid", static_cast<std::int64_t>(::getpid())}});
    app::log_settings(journal, settings);
    return app::run_node(settings, journal, {HOLDFAST_VERSION, HOLDFAST_COMMIT});
}

}  // namespace holdfast::cli
