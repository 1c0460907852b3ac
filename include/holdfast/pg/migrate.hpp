#ifndef HOLDFAST_PG_MIGRATE_HPP
#define HOLDFAST_PG_MIGRATE_HPP

#include "holdfast/pg/database_settings.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::pg {

/// A migration, a check of the schema or an advance of the tokens failed. what() is one line for the operator.
class migration_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// The schema in the database is newer than this binary knows, the isolation level is not READ COMMITTED, or the like:
/// trying again does not help.
class migration_refused : public migration_error {
public:
    using migration_error::migration_error;
};

struct migration_report {
    std::vector<std::string> applied;  ///< Names of the migrations that this run applied, in order; often none.
    int schema_version = 0;            ///< The version of the schema afterwards.
    std::string
        warning;  ///< Empty, or what the operator should do by hand (the role's statement_timeout could not be set).
};

/// Brings the schema to the version that this binary knows; forward only, all or nothing, harmless to repeat and to run
/// on many nodes at once. Sets the role's statement_timeout in this database. Blocks; own connection. Throws
/// migration_refused where repeating cannot help, migration_error otherwise (unreachable database …).
migration_report migrate(const database_settings& settings);

/// The version of the schema, 0 if there is none; throws as migrate() does, also for a schema newer than this binary
/// knows.
int schema_version(const database_settings& settings);

struct token_advance_report {
    std::int64_t previous_token = 0;  ///< The greatest token that could be found before.
    std::int64_t next_token = 0;      ///< Every grant from now on has this token or a greater one.
};

/// Moves the token sequence 10^12 ahead of every token that the database remembers: for use after a restore, when
/// grants newer than the backup are forgotten. Blocks; own connection. Throws as migrate() does.
token_advance_report advance_tokens(const database_settings& settings);

}  // namespace holdfast::pg

#endif
