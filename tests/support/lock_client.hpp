#ifndef HOLDFAST_TESTS_SUPPORT_LOCK_CLIENT_HPP
#define HOLDFAST_TESTS_SUPPORT_LOCK_CLIENT_HPP

// What a user of the service would write: requests about locks over one keep-alive connection, and the answers taken
// apart. Knows the contract well enough to say where an answer leaves it.

#include "support/http_client.hpp"
#include "support/lease_recorder.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::tests {

struct reply {
    int status = 0;       ///< 0: no answer, see `failure`.
    std::string failure;  ///< Why there is no answer: connection refused, closed, too late …
    test::http_answer answer;
    boost::json::value json;  ///< The body; null when it is no JSON.
    lease_recorder::span when{};

    /// Whether the body says `"acquired":true`; throws std::runtime_error when it does not say at all.
    bool acquired() const;
    /// The lease in the body, or in its member `lock`. Throws std::runtime_error when there is none.
    lease_recorder::lease lease() const;
    std::int64_t token() const { return lease().token; }
    /// `retry_after_ms`; throws std::runtime_error when there is none.
    std::int64_t retry_after_ms() const;
    /// NAME of the problem type `/problems/NAME`, or "" when the body is no problem.
    std::string problem() const;
    /// Status, reason and body, for a test's message.
    std::string text() const;
    std::chrono::milliseconds duration() const;
};

/// Percent-encodes everything but unreserved characters, so that any bytes make one path segment.
std::string path_segment(const std::string& name);

/// "" when the answer is one that the contract allows for a request about locks, else what is wrong with it: a status
/// out of place, a member too much or missing, a problem without its parts, a 503 without Retry-After …
std::string outside_the_contract(const reply& reply);

/// Microseconds since the epoch of a time in the contract's format; nothing when it is not in that format.
std::optional<std::int64_t> parse_time_us(const std::string& text);

/// One user. Connects when needed, and again after a connection is gone. One thread at a time.
class lock_client {
public:
    /// No request waits longer than `patience` for its answer.
    explicit lock_client(std::uint16_t port, std::chrono::milliseconds patience = std::chrono::seconds(15))
        : port_(port), patience_(patience) {}

    /// Further requests go to this port.
    void move_to(std::uint16_t port);

    reply get(const std::string& target) { return request("GET", target); }
    reply look(const std::string& resource) { return get("/locks/" + path_segment(resource)); }
    reply acquire(const std::string& resource, const std::string& owner, std::int64_t ttl_seconds,
                  const std::string& idempotency_key = "");
    reply renew(const std::string& resource, const std::string& owner, std::int64_t ttl_seconds,
                std::optional<std::int64_t> token = {});
    /// DELETE.
    reply release(const std::string& resource, const std::string& owner, std::optional<std::int64_t> token = {});
    /// POST /locks/{resource}/release.
    reply post_release(const std::string& resource, const std::string& owner, std::optional<std::int64_t> token = {});
    /// Never throws for what the network or the service does; see reply::failure.
    reply request(const std::string& method, const std::string& target, const std::string& body = "",
                  const test::http_client::header_list& headers = {});

private:
    std::uint16_t port_;
    std::chrono::milliseconds patience_;
    std::optional<test::http_client> connection_;
};

/// A user whose every answer is held against the contract and whose leases are written down.
class recorded_client {
public:
    recorded_client(std::uint16_t port, std::string owner, lease_recorder& recorder)
        : client_(port), owner_(std::move(owner)), recorder_(recorder) {}

    void move_to(std::uint16_t port) { client_.move_to(port); }
    const std::string& owner() const noexcept { return owner_; }

    reply acquire(const std::string& resource, std::int64_t ttl_seconds, const std::string& idempotency_key = "");
    reply renew(const std::string& resource, std::int64_t ttl_seconds, std::int64_t token);
    reply release(const std::string& resource, std::int64_t token);
    reply look(const std::string& resource);

private:
    /// Notes what the contract does not allow. No answer at all is judged by the test, not here.
    const reply& judged(const std::string& what, const reply& reply);

    lock_client client_;
    std::string owner_;
    lease_recorder& recorder_;
};

}  // namespace holdfast::tests

#endif
