#include "support/postgres_cluster.hpp"

#include "support/free_port.hpp"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cctype>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace holdfast::tests {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// PostgreSQL refuses to run as root.
std::string server_user() {
    return geteuid() == 0 ? "postgres" : "";
}

fs::path newest_bin_directory() {
    fs::path newest;
    int newest_version = 0;
    for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql")) {
        const int version = std::atoi(entry.path().filename().c_str());
        if (version > newest_version && fs::exists(entry.path() / "bin" / "initdb")) {
            newest_version = version;
            newest = entry.path() / "bin";
        }
    }
    if (newest.empty()) throw std::runtime_error("no PostgreSQL server is installed below /usr/lib/postgresql");
    return newest;
}

std::vector<pid_t> children_of(pid_t parent) {
    std::vector<pid_t> children;
    std::ifstream list("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
    for (pid_t child; list >> child;)
        children.push_back(child);
    return children;
}

}  // namespace

postgres_cluster::postgres_cluster(settings extra) : data_(directory_.path() / "data"), extra_(std::move(extra)) {
    directory_.give_to(server_user());
    run_to_end({(newest_bin_directory() / "initdb").string(), "-D", data_.string(), "-U", "holdfast", "-A", "trust",
                "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"},
               {.environment = {}, .output = {}, .user = server_user()});
    port_ = free_port();
    start();
}

postgres_cluster::~postgres_cluster() {
    if (!server_) return;
    signal_all(SIGCONT);
    server_->signal(SIGQUIT);
    server_->wait_for(10s);
}

postgres_cluster& postgres_cluster::shared() {
    static postgres_cluster cluster;
    return cluster;
}

std::string postgres_cluster::url(const std::string& database) const {
    return "postgresql://holdfast@127.0.0.1:" + std::to_string(port_) + "/" + database;
}

std::string postgres_cluster::create_database(const std::string& options) {
    static std::atomic<int> counter = 0;
    const std::string name = "case_" + std::to_string(getpid()) + "_" + std::to_string(++counter);
    psql("CREATE DATABASE " + name + " " + options);
    return name;
}

std::string postgres_cluster::psql(const std::string& sql, const std::string& database) const {
    std::string output = run_to_end({(newest_bin_directory() / "psql").string(), "-X", "-A", "-t", "-q", "-v",
                                     "ON_ERROR_STOP=1", "-d", url(database), "-c", sql},
                                    {.environment = {{"PGOPTIONS", ""}}, .output = {}, .user = ""});
    while (!output.empty() && std::isspace(static_cast<unsigned char>(output.back())))
        output.pop_back();
    return output;
}

void postgres_cluster::start() {
    std::vector<std::string> argv{(newest_bin_directory() / "postgres").string(),
                                  "-D",
                                  data_.string(),
                                  "-p",
                                  std::to_string(port_),
                                  "-k",
                                  directory_.path().string()};
    // Tests look for whole statements in pg_stat_activity.
    settings all{{"listen_addresses", "127.0.0.1"},
                 {"fsync", "off"},
                 {"max_connections", "100"},
                 {"track_activity_query_size", "16384"}};
    for (const auto& [name, value] : extra_)
        all[name] = value;
    for (const auto& [name, value] : all)
        argv.insert(argv.end(), {"-c", name + "=" + value});
    server_.reset();
    server_.emplace(argv, child_process::options{{}, directory_.path() / "log", server_user()});
    const auto end = std::chrono::steady_clock::now() + 30s;
    while (!answers()) {
        if (!server_->running() || std::chrono::steady_clock::now() > end)
            throw std::runtime_error("PostgreSQL did not start: " + log());
        std::this_thread::sleep_for(20ms);
    }
}

bool postgres_cluster::answers() const {
    child_process probe(
        {(newest_bin_directory() / "pg_isready").string(), "-q", "-h", "127.0.0.1", "-p", std::to_string(port_)}, {});
    return probe.wait_for(5s) == 0;
}

void postgres_cluster::end_with(int signal_number) {
    server_->signal(signal_number);
    if (!server_->wait_for(30s)) throw std::runtime_error("PostgreSQL did not stop: " + log());
}

void postgres_cluster::stop() {
    end_with(SIGINT);
}

void postgres_cluster::crash() {
    end_with(SIGQUIT);
}

void postgres_cluster::signal_all(int number) const {
    // The postmaster first: what it forks afterwards would be missed.
    const pid_t postmaster = server_->pid();
    kill(postmaster, number);
    for (const pid_t backend : children_of(postmaster))
        kill(backend, number);
}

void postgres_cluster::freeze() {
    signal_all(SIGSTOP);
}

void postgres_cluster::thaw() {
    signal_all(SIGCONT);
}

std::string postgres_cluster::log() const {
    std::ostringstream text;
    text << std::ifstream(directory_.path() / "log").rdbuf();
    return text.str();
}

}  // namespace holdfast::tests
