#ifndef HOLDFAST_TESTS_SUPPORT_SHARED_NODES_HPP
#define HOLDFAST_TESTS_SUPPORT_SHARED_NODES_HPP

#include "support/lock_client.hpp"
#include "support/node.hpp"
#include "support/postgres_cluster.hpp"

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::tests {

/// A name that no other case of this process uses.
std::string fresh_name(const std::string& stem);

/// Two nodes over one database, started once a process: for cases that isolate themselves by fresh names.
struct shared_nodes {
    std::string database;
    node first;
    node second;

    static shared_nodes& instance();

private:
    shared_nodes();
};

/// Two users, one at each of the shared nodes.
struct two_users {
    lock_client alice{shared_nodes::instance().first.port()};
    lock_client bob{shared_nodes::instance().second.port()};
};

/// The pairs (field, code) of a 422; empty when there are none.
std::vector<std::pair<std::string, std::string>> errors_of(const reply& reply);

/// Runs `work(0)` to `work(count - 1)`, each on its own thread, and waits for all. An exception of any is thrown here.
/// Boost.Test's checks do not belong into them: only one thread may report.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work);

}  // namespace holdfast::tests

#endif
