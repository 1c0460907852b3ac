#ifndef HOLDFAST_CLI_LOAD_PLAN_HPP
#define HOLDFAST_CLI_LOAD_PLAN_HPP

#include "holdfast/client/server_url.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

/// What a connection does over and over: one round. All but `look` and `health` take locks.
enum class load_kind {
    pairs,   ///< Acquire a random resource, then release it under its fencing token.
    mixed,   ///< Acquire a random resource, renew it, look at it, be refused it as another owner, release it.
    hot,     ///< Acquire the one resource that all connections want; when granted, release it at once.
    look,    ///< Look at a random lock that nobody holds.
    health,  ///< GET /healthz.
};

std::string_view to_text(load_kind kind) noexcept;

struct load_plan {
    load_kind kind = load_kind::pairs;
    std::vector<client::server_url> servers;  ///< Connections are dealt out to them in turn.
    std::size_t connections = 64;
    /// Closed loop when 0: a connection starts its next round when the last one is done. Otherwise open loop: so many
    /// rounds a second are due in all, at even distances, whatever became of the earlier ones. A free connection takes
    /// each; while none is free it waits, and its latency is counted from when it was due. Not with `hot` and `health`.
    std::int64_t rounds_per_second = 0;
    std::size_t idle_connections = 0;  ///< Opened first, one GET /healthz each, then silent until the end.
    std::chrono::seconds warmup{1};    ///< Under load, but not measured.
    std::chrono::seconds length{10};
    std::int64_t resources = 1'000'000;
    std::string hot_resource = "hot";  ///< A valid resource name.
    std::int64_t ttl_seconds = 30;
    std::chrono::seconds answer_limit{30};  ///< A request without answer is given up as timed out after this.
};

}  // namespace holdfast::cli

#endif
