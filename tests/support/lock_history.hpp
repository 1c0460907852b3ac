#ifndef HOLDFAST_TESTS_SUPPORT_LOCK_HISTORY_HPP
#define HOLDFAST_TESTS_SUPPORT_LOCK_HISTORY_HPP

// What clients did to one resource and what they were told, with times that the database's clock shares: all processes
// of a test run on one machine, so CLOCK_REALTIME, read by a client, and PostgreSQL's clock_timestamp() are one clock.

#include "support/lock_client.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::tests {

enum class call_kind { acquire, renew, release, look };

/// `lease`: granted, renewed or found, the lease was shown. `unknown`: it may have taken effect or not.
enum class call_answer { lease, refused, released, not_found, forbidden, unknown };

/// One operation. Times are microseconds since the epoch.
struct lock_call {
    call_kind kind = call_kind::look;
    std::string owner;                  ///< Empty for a look.
    std::string key;                    ///< Of an acquire; empty for none.
    std::optional<std::int64_t> token;  ///< Demanded by a renew or release.
    std::int64_t ttl_us = 0;

    std::int64_t called_us = 0;
    /// When the answer was there. For an unknown outcome: until when it may take effect.
    std::int64_t returned_us = 0;

    call_answer answer = call_answer::unknown;
    // What a shown lease said.
    std::string shown_owner;
    std::int64_t shown_token = 0;
    std::int64_t acquired_at_us = 0;
    std::int64_t expires_at_us = 0;
    std::int64_t expires_in_ms = 0;
    std::int64_t retry_after_ms = 0;  ///< Of a refusal.

    std::string text() const;
};

/// Collects operations. Any thread.
class lock_history {
public:
    void add(lock_call call);
    /// An answer that the contract does not know.
    void complain(std::string what);

    std::vector<lock_call> calls() const;
    std::vector<std::string> complaints() const;

private:
    mutable std::mutex mutex_;
    std::vector<lock_call> calls_;
    std::vector<std::string> complaints_;
};

/// Microseconds since the epoch by CLOCK_REALTIME, rounded down.
std::int64_t wall_clock_us();

/// One connection of one owner, whose operations on one resource are written down.
class history_client {
public:
    /// What was not answered is final `finality` after it was called.
    history_client(std::uint16_t port, std::string resource, std::string owner, std::chrono::milliseconds finality,
                   lock_history& history);

    void move_to(std::uint16_t port);

    lock_call acquire(std::int64_t ttl_seconds, const std::string& key = "");
    lock_call renew(std::int64_t ttl_seconds, std::optional<std::int64_t> token = {});
    lock_call release(std::optional<std::int64_t> token = {});
    lock_call look();

    // Send it and close the connection after `patience`, without reading: the outcome is not known.
    void abandon_acquire(std::int64_t ttl_seconds, const std::string& key, std::chrono::microseconds patience);
    void abandon_renew(std::int64_t ttl_seconds, std::chrono::microseconds patience);
    void abandon_release(std::chrono::microseconds patience);

private:
    lock_call begin(call_kind kind, std::int64_t ttl_seconds = 0) const;
    lock_call end(lock_call call, const reply& reply);
    void read_answer(lock_call& call, const reply& reply);
    void abandon(lock_call call, const std::string& target, const std::string& body,
                 std::chrono::microseconds patience);

    lock_client client_;
    std::uint16_t port_;
    std::string resource_;
    std::string owner_;
    std::chrono::milliseconds finality_;
    lock_history& history_;
};

}  // namespace holdfast::tests

#endif
