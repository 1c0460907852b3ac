#ifndef HOLDFAST_TESTS_SUPPORT_PGBOUNCER_HPP
#define HOLDFAST_TESTS_SUPPORT_PGBOUNCER_HPP

#include "support/child_process.hpp"
#include "support/temporary_directory.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::tests {

/// A real PgBouncer in transaction mode before a database server on a loopback port, gone with the object. It passes
/// every database through, with few server sessions, so that clients do share them.
class pgbouncer {
public:
    /// Starts it and waits until it takes connections. Throws std::runtime_error with its log on failure.
    explicit pgbouncer(std::uint16_t database_port);

    std::uint16_t port() const noexcept { return port_; }
    /// `postgresql://holdfast@127.0.0.1:PORT/DATABASE`
    std::string url(const std::string& database) const;
    std::string log() const { return process_->output(); }

private:
    void write_configuration(std::uint16_t database_port) const;

    temporary_directory directory_;
    std::uint16_t port_ = 0;
    std::optional<child_process> process_;
};

}  // namespace holdfast::tests

#endif
