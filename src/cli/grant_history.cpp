#include "holdfast/cli/grant_history.hpp"

namespace holdfast::cli {
namespace {

constexpr std::string_view same_token = "a fencing token was given twice";
constexpr std::string_view two_holders = "two held it at a time";
constexpr std::string_view stamps_fell = "a greater token was granted earlier";

}  // namespace

judged_grant grant_history::granted(const seen_grant& grant) {
    if (last_ && grant.fencing_token <= last_->fencing_token) return judge_late_answer(grant);
    const judged_grant judged = last_ ? judge_next(grant) : judged_grant();
    last_ = grant;
    state_ = state::held;
    return judged;
}

judged_grant grant_history::judge_next(const seen_grant& next) const {
    judged_grant judged;
    const bool is_anothers = next.owner != last_->owner;
    if (next.acquired_at < last_->acquired_at) judged.violation = stamps_fell;
    switch (state_) {
        case state::unknown:
            break;
        case state::releasing:
            if (!is_anothers || next.asked_at > release_sent_) break;
            judged.handover = next.received_at - release_sent_;
            judged.is_across_servers = next.server != release_server_;
            break;
        case state::held:
            if (!is_anothers) break;  // the holder may acquire again
            judged.is_early = next.acquired_at < last_->expires_at;
            if (judged.is_early) judged.violation = two_holders;
            if (judged.is_early || next.asked_at > last_->trusted_until) break;
            judged.lateness = next.received_at - last_->trusted_until;
            judged.stamped_lateness = next.acquired_at - last_->expires_at;
            break;
    }
    return judged;
}

/// Its answer came after that of a grant with a greater token. So it cannot have been released before that one, and
/// must have ended by itself.
judged_grant grant_history::judge_late_answer(const seen_grant& earlier) const {
    judged_grant judged;
    if (earlier.fencing_token == last_->fencing_token) {
        judged.violation = same_token;
    } else if (earlier.owner != last_->owner && last_->acquired_at < earlier.expires_at) {
        judged.is_early = true;
        judged.violation = two_holders;
    }
    return judged;
}

void grant_history::renewed(std::int64_t fencing_token, domain::timestamp expires_at, clock::time_point trusted_until) {
    if (!is_last(fencing_token)) return;
    last_->expires_at = expires_at;
    last_->trusted_until = trusted_until;
}

void grant_history::releasing(std::int64_t fencing_token, clock::time_point now, std::size_t server) {
    if (!is_last(fencing_token)) return;
    state_ = state::releasing;
    release_sent_ = now;
    release_server_ = server;
}

void grant_history::release_failed(std::int64_t fencing_token) {
    if (is_last(fencing_token)) state_ = state::unknown;
}

bool grant_history::is_handover_awaited(clock::time_point from, clock::time_point until) const {
    if (!last_ || asking_ == 0) return false;
    switch (state_) {
        case state::unknown:
            return false;
        case state::releasing:
            return release_sent_ >= from && release_sent_ < until;
        case state::held:
            return last_->trusted_until >= from && last_->trusted_until < until;
    }
    return false;
}

}  // namespace holdfast::cli
