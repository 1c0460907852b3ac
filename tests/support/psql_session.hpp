#ifndef HOLDFAST_TESTS_SUPPORT_PSQL_SESSION_HPP
#define HOLDFAST_TESTS_SUPPORT_PSQL_SESSION_HPP

#include "support/child_process.hpp"
#include "support/postgres_cluster.hpp"

#include <memory>
#include <string>

namespace holdfast::tests {

/// A stranger's session at the database: it runs its statements, one after the other, while the test goes on. Its
/// connection ends with the object.
class psql_session {
public:
    psql_session(const postgres_cluster& cluster, const std::string& database, const std::string& sql);

    bool running() { return process_.running(); }

private:
    child_process process_;
};

/// A stranger who holds the row of `resource` locked until the object is gone. The constructor returns when the row is
/// locked; the row must exist. Throws std::runtime_error when it cannot be had within 10 s.
class row_lock {
public:
    row_lock(const postgres_cluster& cluster, const std::string& database, const std::string& resource);
    /// Returns when the row is free again.
    ~row_lock();
    row_lock(const row_lock&) = delete;
    row_lock& operator=(const row_lock&) = delete;

private:
    bool is_locked() const;

    const postgres_cluster& cluster_;
    std::string database_;
    std::string resource_;
    std::unique_ptr<psql_session> session_;
};

}  // namespace holdfast::tests

#endif
