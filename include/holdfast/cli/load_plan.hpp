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
    wait,    ///< Stand in line for one of the resources, as the plan's wait_kind says.
};

/// What an owner that stands in line does with the lock.
enum class wait_kind {
    hand_over,  ///< Releases it at once, or after plan.hold, and queues again.
    abandon,    ///< Never releases it: the lease ends by itself. Queues again at once, under another name.
    park,       ///< Does not get it: it is held, and renewed, all the time. To measure a node that only keeps waiters.
};

std::string_view to_text(load_kind kind) noexcept;
std::string_view to_text(wait_kind kind) noexcept;

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

    // Of load_kind::wait. Owner n is a connection to server n mod K of K servers, and queues for resource n / K mod M
    // of M, so that one resource's owners stand at all servers. The resources are no other run's.
    wait_kind waiting = wait_kind::hand_over;
    std::int64_t wait_seconds = 50;  ///< Of each request; who is refused then asks again. Comes on top of answer_limit.
    std::chrono::milliseconds hold{0};
};

}  // namespace holdfast::cli

#endif
