#include "holdfast/pg/migrate.hpp"

#include "holdfast/pg/connection.hpp"
#include "holdfast/pg/pqxx_compat.hpp"
#include "holdfast/pg/session_migration.hpp"

#include <algorithm>

namespace holdfast::pg {
namespace {

constexpr std::int64_t token_advance = 1'000'000'000'000;

/// libpq ends its messages with a line feed and may fold them.
std::string one_line(std::string text) {
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

void check_schema_name(const std::string& schema) {
    const bool fits = !schema.empty() && schema.size() <= 63 && schema.find('\0') == std::string::npos;
    if (!fits) throw migration_refused("the schema's name must have 1 to 63 bytes");
}

/// Runs `work` and turns every failure but a migration_error into one.
template <class Work>
auto reported(Work work) {
    try {
        return work();
    } catch (const migration_error&) {
        throw;
    } catch (const std::exception& error) {
        throw migration_error(one_line(error.what()));
    }
}

/// One transaction of a migrating session.
class migrating_session {
public:
    migrating_session(const database_settings& settings, socket_watch& watch)
        : settings_(settings), texts_(settings.schema), connection_(settings, texts_, watch), work_(connection_.raw()) {
        session_timeout_ms_ =
            work_.exec("SELECT setting FROM pg_settings WHERE name = 'statement_timeout'")[0][0].as<std::int64_t>();
        // The role's own limit must not cut a migration short, nor may a forgotten session hold it up for ever.
        work_.exec("SET LOCAL statement_timeout = 0");
        work_.exec("SET LOCAL lock_timeout = '30s'");
    }

    void check_database() {
        if (text("SHOW server_encoding") != "UTF8") throw migration_refused("the database's encoding must be UTF8");
        if (text("SHOW transaction_isolation") != "read committed")
            throw migration_refused("default_transaction_isolation must be 'read committed'");
    }

    /// 0 without a schema. Refuses one that is newer than this binary.
    int version() {
        // Not to_regclass: it answers from a cache that waiting for an advisory lock does not refresh.
        const auto found =
            compat::run_text(work_,
                             "SELECT EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = "
                             "c.relnamespace WHERE n.nspname = $1 AND c.relname = 'schema_migrations')",
                             {settings_.schema});
        const int version = found[0][0].as<bool>() ? work_.exec(texts_.text(query::schema_version))[0][0].as<int>() : 0;
        const int known = static_cast<int>(known_migrations().size());
        if (version > known)
            throw migration_refused("the schema has version " + std::to_string(version) + ", this binary knows only " +
                                    std::to_string(known) + ": install a newer release");
        return version;
    }

    bool timeout_is_set() const { return session_timeout_ms_ == settings_.statement_timeout.count(); }

    void wait_for_turn() {
        compat::run_text(work_, "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))",
                         {"holdfast migrate " + settings_.schema});
    }

    std::vector<std::string> apply_after(int version) {
        if (version == 0) create_schema();
        std::vector<std::string> applied;
        for (const migration& each : known_migrations()) {
            if (each.version <= version) continue;
            work_.exec(fill_in(each.text, settings_.schema));
            compat::run_text(work_,
                             "INSERT INTO " + quoted_identifier(settings_.schema) +
                                 ".schema_migrations (version, name) VALUES ($1::integer, $2)",
                             {std::to_string(each.version), each.name});
            applied.push_back(each.name);
        }
        return applied;
    }

    /// The role's limit in this database; a limit inside the statement would come too late, and SET does not survive a
    /// transaction pooler. Returns what the operator should do by hand, or nothing.
    std::string set_role_timeout() {
        const std::string statement = "ALTER ROLE CURRENT_USER IN DATABASE " +
                                      work_.quote_name(text("SELECT current_database()")) +
                                      " SET statement_timeout = " + std::to_string(settings_.statement_timeout.count());
        try {
            pqxx::subtransaction attempt(work_);
            attempt.exec(statement);
            attempt.commit();
            return {};
        } catch (const pqxx::sql_error&) {
            return "could not set the role's statement_timeout; run as an administrator: " + statement;
        }
    }

    token_advance_report advance() {
        const auto result =
            compat::run_text(work_, texts_.text(query::advance_tokens), {std::to_string(token_advance)});
        return {result[0]["previous_token"].as<std::int64_t>(), result[0]["next_token"].as<std::int64_t>()};
    }

    void commit() { work_.commit(); }

private:
    std::string text(const std::string& query) { return work_.exec(query)[0][0].as<std::string>(); }

    void create_schema() {
        const auto schema = quoted_identifier(settings_.schema);
        // CREATE SCHEMA IF NOT EXISTS wants the right to create even where there is nothing to do.
        const auto found =
            compat::run_text(work_, "SELECT count(*) FROM pg_namespace WHERE nspname = $1", {settings_.schema});
        if (found[0][0].as<int>() == 0) work_.exec("CREATE SCHEMA " + schema);
        work_.exec("CREATE TABLE " + schema +
                   ".schema_migrations (version integer PRIMARY KEY, name text NOT NULL, "
                   "applied_at timestamptz NOT NULL DEFAULT clock_timestamp())");
    }

    const database_settings& settings_;
    query_texts texts_;
    connection connection_;
    pqxx::work work_;
    std::int64_t session_timeout_ms_ = 0;
};

}  // namespace

migration_report migrate(const database_settings& settings, socket_watch& watch) {
    check_schema_name(settings.schema);
    return reported([&] {
        migrating_session session(settings, watch);
        session.check_database();
        migration_report report;
        report.schema_version = static_cast<int>(known_migrations().size());
        // Nothing to do is the usual case, and must work on a standby too.
        if (session.version() == report.schema_version && session.timeout_is_set()) return report;
        session.wait_for_turn();
        report.applied = session.apply_after(session.version());
        if (!session.timeout_is_set()) report.warning = session.set_role_timeout();
        session.commit();
        return report;
    });
}

int schema_version(const database_settings& settings, socket_watch& watch) {
    check_schema_name(settings.schema);
    return reported([&] {
        migrating_session session(settings, watch);
        session.check_database();
        return session.version();
    });
}

migration_report migrate(const database_settings& settings) {
    socket_watch nobody_watches;
    return migrate(settings, nobody_watches);
}

int schema_version(const database_settings& settings) {
    socket_watch nobody_watches;
    return schema_version(settings, nobody_watches);
}

token_advance_report advance_tokens(const database_settings& settings) {
    check_schema_name(settings.schema);
    return reported([&] {
        socket_watch nobody_watches;
        migrating_session session(settings, nobody_watches);
        if (session.version() == 0) throw migration_error("there is no schema yet: run `holdfast migrate` first");
        session.wait_for_turn();
        const token_advance_report report = session.advance();
        session.commit();
        return report;
    });
}

}  // namespace holdfast::pg
