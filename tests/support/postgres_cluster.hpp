#ifndef HOLDFAST_TESTS_SUPPORT_POSTGRES_CLUSTER_HPP
#define HOLDFAST_TESTS_SUPPORT_POSTGRES_CLUSTER_HPP

#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace holdfast::tests {

/// A private PostgreSQL server on a free loopback port, gone with the object. fsync is off: no test here judges
/// durability, and tests that pull plugs kill processes, not machines. (Benchmarks never use this.)
/// The superuser is `holdfast`, without password, reachable from loopback only.
class postgres_cluster {
public:
    using settings = std::map<std::string, std::string>;

    /// initdb and start; `extra` are server settings. Throws std::runtime_error with the server's log on failure.
    explicit postgres_cluster(settings extra = {});
    ~postgres_cluster();

    /// One cluster a process, started at the first call: for cases that isolate themselves by schema or database.
    static postgres_cluster& shared();

    std::uint16_t port() const noexcept { return port_; }
    /// `postgresql://holdfast@127.0.0.1:PORT/DATABASE`
    std::string url(const std::string& database = "postgres") const;
    /// Creates an empty database with a fresh name and returns the name. `options` follow CREATE DATABASE name.
    std::string create_database(const std::string& options = "");
    /// Runs one or more SQL statements through psql and returns what it prints (unaligned, tuples only).
    std::string psql(const std::string& sql, const std::string& database = "postgres") const;

    pid_t postmaster() const noexcept { return server_->pid(); }
    const std::filesystem::path& data_directory() const noexcept { return data_; }
    /// Fast shutdown (SIGINT): sessions are terminated. Waits for the end.
    void stop();
    /// SIGQUIT: as a crash; recovery at the next start. Waits for the end.
    void crash();
    /// Starts again on the same port and waits until it answers.
    void start();
    /// SIGSTOP / SIGCONT to the postmaster and every backend: the database stalls without closing anything.
    void freeze();
    void thaw();
    /// The server's log.
    std::string log() const;

private:
    void signal_all(int number) const;
    bool answers() const;
    void end_with(int signal_number);

    temporary_directory directory_;
    std::filesystem::path data_;
    settings extra_;
    std::uint16_t port_ = 0;
    std::optional<child_process> server_;
};

}  // namespace holdfast::tests

#endif
