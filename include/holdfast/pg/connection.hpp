#ifndef HOLDFAST_PG_CONNECTION_HPP
#define HOLDFAST_PG_CONNECTION_HPP

#include "holdfast/pg/database_settings.hpp"
#include "holdfast/pg/queries.hpp"
#include "holdfast/pg/socket_watch.hpp"

#include <pqxx/pqxx>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::pg {

/// A statement failed after it was sent. `sqlstate` is empty when the connection was lost without a word.
class statement_error : public std::runtime_error {
public:
    statement_error(std::string sqlstate, const std::string& message)
        : std::runtime_error(message), sqlstate_(std::move(sqlstate)) {}

    const std::string& sqlstate() const noexcept { return sqlstate_; }

private:
    std::string sqlstate_;
};

/// `settings.url` as a connection string that never waits long: time limits, keepalives and the application's name are
/// added where the user gave none. No `options`: poolers refuse them. Throws std::runtime_error for a malformed URL.
std::string connection_string(const database_settings& settings);

/// One session. Created, used and destroyed by one thread; blocks. Never reconnects: once broken, throw it away.
class connection {
public:
    /// Connects. Throws std::exception when that fails. `watch` must outlive the connection.
    connection(const database_settings& settings, const query_texts& texts, socket_watch& watch);
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection();

    /// Prepares these on the server, unless prepared statements are off. Throws statement_error.
    void prepare(std::initializer_list<query> queries);

    /// Runs one statement in its own transaction, in one round trip. Throws statement_error.
    pqxx::result run(query which, const std::vector<std::string>& parameters);

    /// Nothing arrived unasked: neither the end of the connection nor the server's farewell. Ask before sending on a
    /// connection that rested, so that a command is not lost to a session that was gone before.
    bool quiet() const noexcept;
    bool broken() const noexcept { return broken_; }

    /// For migrations only: several statements in one transaction.
    pqxx::connection& raw() noexcept { return *session_; }

private:
    const query_texts& texts_;
    socket_watch& watch_;
    bool prepared_statements_;
    bool broken_ = false;
    std::unique_ptr<pqxx::connection> session_;
};

}  // namespace holdfast::pg

#endif
