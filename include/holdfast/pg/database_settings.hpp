#ifndef HOLDFAST_PG_DATABASE_SETTINGS_HPP
#define HOLDFAST_PG_DATABASE_SETTINGS_HPP

#include <chrono>
#include <cstddef>
#include <string>

namespace holdfast::pg {

/// How a node uses its database. Defaults are those of the settings reference.
struct database_settings {
    std::string url;                  ///< A libpq URI or keyword/value string (PostgreSQL manual, 34.1.1).
    std::string listen_url;           ///< The same without a pooler between, for LISTEN; empty: url.
    std::string schema = "holdfast";  ///< Put, quoted, into the SQL text; never search_path.
    std::size_t connections =
        2;  ///< Threads for ordinary commands; one connection each. Two more serve the slow lane and one the monitor.
    bool prepared_statements = true;  ///< Off behind a transaction pooler.
    bool migrate_on_start = true;
    std::chrono::milliseconds statement_timeout{4'000};
    std::chrono::milliseconds lock_timeout{1'000};
    std::chrono::seconds connect_timeout{2};
    std::chrono::milliseconds reconnect_backoff_max{1'000};
    std::size_t queue_max = 10'000;               ///< Commands waiting for a thread; one more is `overloaded`.
    std::size_t batch_rows_max = 128;             ///< Commands in one statement.
    std::size_t places_per_resource_max = 1'000;  ///< In a queue, kept ones counted; one more is refused.
    std::chrono::seconds sweep_after{900};
    std::chrono::seconds sweep_interval{60};
};

}  // namespace holdfast::pg

#endif
