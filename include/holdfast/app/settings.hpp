#ifndef HOLDFAST_APP_SETTINGS_HPP
#define HOLDFAST_APP_SETTINGS_HPP

#include "holdfast/app/option_set.hpp"
#include "holdfast/domain/journal.hpp"
#include "holdfast/http/server_settings.hpp"
#include "holdfast/pg/database_settings.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::app {

/// Everything that an operator can set about a node. docs/settings.md is the reference.
struct settings {
    http::server_settings server;
    pg::database_settings database;
    bool allow_anonymous = false;
    std::size_t waiters_max = 10'000;  ///< Requests that wait in line on this node; one more is `overloaded`.
    std::chrono::milliseconds request_deadline{5'000};
    std::chrono::milliseconds drain_delay{2'000};
    std::chrono::milliseconds drain_limit{10'000};
    domain::log_level log_level = domain::log_level::info;
};

/// Adds every setting of a node to `options`, in groups, with the defaults that `target` holds.
void add_node_settings(option_set& options, settings& target);

/// Adds those that `holdfast migrate` needs.
void add_migration_settings(option_set& options, settings& target);

/// Throws usage_error when settings contradict each other or cannot work, and fills in what follows from them
/// (server.outcome_final_after). Call it after option_set::read().
void complete_node_settings(settings& target);

/// The same for the settings of `holdfast migrate`.
void check_migration_settings(const settings& target);

/// Throws usage_error when a variable of `variables` (NAME=VALUE, as in `environ`) begins with HOLDFAST_, is not empty
/// and is neither a setting of a node nor one of the names that the stacks and the command line use (HOLDFAST_URL,
/// HOLDFAST_NODE_URLS, HOLDFAST_NODE_PIDS, HOLDFAST_FENCING_TOKEN): a misspelt setting must not pass as unset.
void check_environment(const char* const* variables);

/// Writes the line `settings`: every setting under its snake_case name, secrets masked.
void log_settings(domain::journal& journal, const settings& settings);

/// `debug`, `info`, `warning`, `error`.
std::string_view to_text(domain::log_level level) noexcept;

}  // namespace holdfast::app

#endif
