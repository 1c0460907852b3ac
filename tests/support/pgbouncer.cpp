#include "support/pgbouncer.hpp"

#include "support/free_port.hpp"
#include "support/wait_until.hpp"

#include <unistd.h>

#include <fstream>
#include <stdexcept>

namespace holdfast::tests {

using namespace std::chrono_literals;

pgbouncer::pgbouncer(std::uint16_t database_port) : port_(free_port()) {
    // It refuses to run as root, as the database does.
    const std::string user = geteuid() == 0 ? "postgres" : "";
    directory_.give_to(user);
    write_configuration(database_port);
    process_.emplace(std::vector<std::string>{"/usr/sbin/pgbouncer", (directory_.path() / "pgbouncer.ini").string()},
                     child_process::options{{}, directory_.path() / "log", user});
    if (!wait_until(10s, [this] { return accepts_connections(port_); }))
        throw std::runtime_error("PgBouncer did not start: " + log());
}

std::string pgbouncer::url(const std::string& database) const {
    return "postgresql://holdfast@127.0.0.1:" + std::to_string(port_) + "/" + database;
}

void pgbouncer::write_configuration(std::uint16_t database_port) const {
    const auto users = directory_.path() / "users";
    std::ofstream(users) << "\"holdfast\" \"\"\n";
    std::ofstream(directory_.path() / "pgbouncer.ini") << "[databases]\n* = host=127.0.0.1 port=" << database_port
                                                       << "\n[pgbouncer]\n"
                                                          "listen_addr = 127.0.0.1\n"
                                                          "listen_port = "
                                                       << port_
                                                       << "\nunix_socket_dir =\n"
                                                          "auth_type = trust\n"
                                                          "auth_file = "
                                                       << users.string()
                                                       << "\npool_mode = transaction\n"
                                                          "default_pool_size = 3\n"
                                                          "max_client_conn = 200\n"
                                                          "query_wait_timeout = 3\n";
}

}  // namespace holdfast::tests
