#include "support/psql_session.hpp"

#include "support/wait_until.hpp"

#include <stdexcept>

namespace holdfast::tests {

using namespace std::chrono_literals;

namespace {

/// For names without quotes, as tests make them.
std::string row_of(const std::string& resource) {
    return "FROM holdfast.distributed_locks WHERE resource = '" + resource + "' FOR UPDATE";
}

}  // namespace

psql_session::psql_session(const postgres_cluster& cluster, const std::string& database, const std::string& sql)
    : process_({"psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", cluster.url(database), "-c", sql},
               // The role's own limit, which the migration sets, would end what is meant to last.
               {.environment = {{"PGOPTIONS", "-c statement_timeout=0"}}, .output = {}, .user = ""}) {}

row_lock::row_lock(const postgres_cluster& cluster, const std::string& database, const std::string& resource)
    : cluster_(cluster), database_(database), resource_(resource) {
    session_ = std::make_unique<psql_session>(cluster, database,
                                              "BEGIN; SELECT 1 " + row_of(resource) + "; SELECT pg_sleep(600); COMMIT");
    if (!wait_until(10s, [this] { return is_locked(); }))
        throw std::runtime_error("the row of " + resource + " could not be locked");
}

row_lock::~row_lock() {
    session_.reset();
    try {
        // The server notices a dead client only when it writes to it.
        cluster_.psql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND "
            "query LIKE '%" +
            resource_ + "%' AND pid <> pg_backend_pid()");
        wait_until(10s, [this] { return !is_locked(); });
    } catch (const std::runtime_error&) {
        // The database is not there: then nobody holds the row either.
    }
}

bool row_lock::is_locked() const {
    return cluster_.psql("SELECT count(*) FROM holdfast.distributed_locks WHERE resource = '" + resource_ + "'",
                         database_) == "1" &&
           cluster_.psql("SELECT 1 " + row_of(resource_) + " SKIP LOCKED", database_).empty();
}

}  // namespace holdfast::tests
