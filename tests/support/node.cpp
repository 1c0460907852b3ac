#include "support/node.hpp"

#include "support/lock_client.hpp"
#include "support/wait_until.hpp"

#include <boost/json/parse.hpp>

#include <signal.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace holdfast::tests {
namespace {

using namespace std::chrono_literals;

/// A sanitizer build, or two cores under everything else, may take its time.
constexpr auto start_limit = 20s;

}  // namespace

node::node(const std::string& database_url, settings extra, wait_for until, std::vector<std::string> wrapper) {
    child_process::options options;
    options.output = directory_.path() / "log";
    options.environment = {{"HOLDFAST_PORT", "0"}, {"HOLDFAST_DATABASE_URL", database_url}};
    for (const auto& [name, value] : extra)
        options.environment["HOLDFAST_" + name] = value;
    std::vector<std::string> argv = std::move(wrapper);
    argv.insert(argv.end(), {HOLDFAST_BINARY, "serve"});
    process_ = std::make_unique<child_process>(argv, options);
    if (until == wait_for::nothing) return;

    if (!wait_for_event("listening", start_limit)) throw std::runtime_error("the node does not listen: " + log());
    port_ = static_cast<std::uint16_t>(events("listening").front().at("port").to_number<int>());
    if (until == wait_for::ready && !wait_until_ready(start_limit))
        throw std::runtime_error("the node does not become ready: " + log());
}

void node::kill() {
    signal(SIGKILL);
    if (!wait_for_exit(10s)) throw std::runtime_error("the node survived SIGKILL");
}

bool node::wait_until_ready(std::chrono::milliseconds limit) const {
    return wait_until(limit, [this] { return lock_client(port_).get("/readyz").status == 200; });
}

std::vector<std::string> node::log_lines() const {
    std::istringstream text(log());
    std::vector<std::string> lines;
    // A last line without its end is still being written.
    for (std::string line; std::getline(text, line) && !text.eof();)
        lines.push_back(line);
    return lines;
}

std::vector<boost::json::object> node::events(const std::string& event) const {
    std::vector<boost::json::object> found;
    for (const std::string& line : log_lines()) {
        boost::system::error_code no_json;
        const auto value = boost::json::parse(line, no_json);
        if (no_json || !value.is_object()) continue;
        const auto* name = value.as_object().if_contains("event");
        if (name && name->is_string() && name->as_string() == event) found.push_back(value.as_object());
    }
    return found;
}

bool node::wait_for_event(const std::string& event, std::chrono::milliseconds limit) const {
    return wait_until(limit, [&] { return !events(event).empty() || !process_->running(); }) && !events(event).empty();
}

std::size_t node::resident_bytes() const {
    std::ifstream statm("/proc/" + std::to_string(pid()) + "/statm");
    std::size_t total_pages = 0;
    std::size_t resident_pages = 0;
    statm >> total_pages >> resident_pages;
    return resident_pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace holdfast::tests
