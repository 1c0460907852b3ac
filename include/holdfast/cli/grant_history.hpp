#ifndef HOLDFAST_CLI_GRANT_HISTORY_HPP
#define HOLDFAST_CLI_GRANT_HISTORY_HPP

#include "holdfast/domain/timestamp.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace holdfast::cli {

/// A grant as the generator saw it. Moments are its own monotonic ones, stamps are the database's.
struct seen_grant {
    using clock = std::chrono::steady_clock;

    std::int64_t fencing_token = 0;
    std::size_t owner = 0;   ///< Number of whoever got it; another owner has another number.
    std::size_t server = 0;  ///< Number of the server that answered.
    domain::timestamp acquired_at;
    domain::timestamp expires_at;
    clock::time_point asked_at;     ///< When the request was sent.
    clock::time_point received_at;  ///< When its answer had come.
    /// Until when the holder trusts its lease, as the contract says: when it asked, plus `waited_ms`, plus
    /// `expires_in_ms`. That is never after the lease's true end, and before it by what the way of the answer took.
    clock::time_point trusted_until;
};

/// What a grant says about the one before it.
struct judged_grant {
    using duration = std::chrono::steady_clock::duration;

    /// From the moment when the release was sent until the grant was there. Only if the grant's request had been sent
    /// before the release was, that is, for a waiter, and the release was not answered with an error meanwhile.
    std::optional<duration> handover;
    /// The release went to another server than the grant came from.
    bool is_across_servers = false;
    /// From the moment until which the holder before trusted its lease, which it did not release, until the grant was
    /// there; only for a waiter that had asked before. Never below the true lateness, so never negative for a server
    /// that does right; above it by what the ways of two answers took.
    std::optional<duration> lateness;
    /// With `lateness`, by the database's stamps: from that lease's end to the grant.
    std::optional<std::chrono::microseconds> stamped_lateness;
    /// By the stamps, it was granted before that lease ended. A violation too.
    bool is_early = false;
    /// A literal; empty when the history is as it must be.
    std::string_view violation;
};

/// All that happened to one resource which nobody but this process locks, and the judge of it. Knows the grant with the
/// greatest token only, so it stays small however long a run is. Not thread-safe.
class grant_history {
public:
    using clock = std::chrono::steady_clock;

    /// A request was sent that may stand in line for it; and has ended, however.
    void asked() noexcept { ++asking_; }
    void answered() noexcept { --asking_; }
    std::size_t asking() const noexcept { return asking_; }

    /// Judges it against what is known, and keeps it. Call when the answer has come.
    judged_grant granted(const seen_grant& grant);
    /// The holder renewed it.
    void renewed(std::int64_t fencing_token, domain::timestamp expires_at, clock::time_point trusted_until);
    /// The release of that grant is about to be sent.
    void releasing(std::int64_t fencing_token, clock::time_point now, std::size_t server);
    /// It was not answered as it should: from now on it may have been released or not.
    void release_failed(std::int64_t fencing_token);

    /// The greatest so far, 0 for none.
    std::int64_t last_token() const noexcept { return last_ ? last_->fencing_token : 0; }

    /// True when the lock was released, or its lease ended, in [from, until), somebody waits for it, and nobody has
    /// been granted it since.
    bool is_handover_awaited(clock::time_point from, clock::time_point until) const;

private:
    enum class state { held, releasing, unknown };

    bool is_last(std::int64_t fencing_token) const { return last_ && last_->fencing_token == fencing_token; }
    judged_grant judge_next(const seen_grant& next) const;
    judged_grant judge_late_answer(const seen_grant& earlier) const;

    std::optional<seen_grant> last_;  // the greatest token
    state state_ = state::held;
    clock::time_point release_sent_;
    std::size_t release_server_ = 0;
    std::size_t asking_ = 0;
};

}  // namespace holdfast::cli

#endif
