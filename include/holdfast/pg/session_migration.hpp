#ifndef HOLDFAST_PG_SESSION_MIGRATION_HPP
#define HOLDFAST_PG_SESSION_MIGRATION_HPP

#include "holdfast/pg/migrate.hpp"
#include "holdfast/pg/socket_watch.hpp"

namespace holdfast::pg {

/// As their namesakes in migrate.hpp, for a thread whose socket another thread may shut down.
migration_report migrate(const database_settings& settings, socket_watch& watch);
int schema_version(const database_settings& settings, socket_watch& watch);

}  // namespace holdfast::pg

#endif
