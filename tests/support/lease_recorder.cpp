#include "support/lease_recorder.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::tests {
namespace {

using moment = lease_recorder::moment;

std::string described(const lease_recorder::lease& lease) {
    return lease.resource + " to " + lease.owner + " under token " + std::to_string(lease.token) + " from " +
           lease.acquired_at + " to " + lease.expires_at;
}

}  // namespace

void lease_recorder::granted(const lease& grant, span when) {
    const std::lock_guard guard(mutex_);
    auto& grants = by_resource_[grant.resource];
    // The owner's acquire replaced what it held: that one may have ended at any time since this request was sent.
    for (entry& earlier : grants)
        if (earlier.seen.owner == grant.owner && !earlier.ended) earlier.ended = when.sent;
    grants.push_back({grant, when.sent, when.received, when.sent + grant.expires_in, std::nullopt});
}

void lease_recorder::renewed(const lease& lease, span when) {
    const std::lock_guard guard(mutex_);
    for (entry& each : by_resource_[lease.resource]) {
        if (each.seen.token != lease.token) continue;
        if (each.seen.owner != lease.owner || each.seen.acquired_at != lease.acquired_at)
            outside_.push_back("renewed " + described(lease) + " but granted " + described(each.seen));
        each.seen.expires_at = lease.expires_at;
        each.certain_until = when.sent + lease.expires_in;
        return;
    }
    outside_.push_back("renewed, never granted: " + described(lease));
}

void lease_recorder::ended(const std::string& resource, const std::string& owner, moment sent) {
    const std::lock_guard guard(mutex_);
    for (entry& each : by_resource_[resource])
        if (each.seen.owner == owner && !each.ended) each.ended = sent;
}

void lease_recorder::outside_the_contract(std::string what) {
    const std::lock_guard guard(mutex_);
    outside_.push_back(std::move(what));
}

std::size_t lease_recorder::grants() const {
    const std::lock_guard guard(mutex_);
    std::size_t count = 0;
    for (const auto& [resource, grants] : by_resource_)
        count += grants.size();
    return count;
}

std::vector<std::string> lease_recorder::violations() const {
    const std::lock_guard guard(mutex_);
    std::vector<std::string> wrong = outside_;
    for (const auto& [resource, unordered] : by_resource_) {
        auto grants = unordered;
        std::sort(grants.begin(), grants.end(),
                  [](const entry& left, const entry& right) { return left.seen.token < right.seen.token; });
        judge_order(grants, wrong);
        judge_overlap(grants, wrong);
    }
    return wrong;
}

void lease_recorder::judge_order(const std::vector<entry>& grants, std::vector<std::string>& wrong) {
    // Sorted by token. Whoever follows may not have been over before the one in front of it was even asked for.
    moment latest_sent = moment::min();
    for (std::size_t i = 0; i < grants.size(); ++i) {
        if (i > 0 && grants[i].seen.token == grants[i - 1].seen.token)
            wrong.push_back("token granted twice: " + described(grants[i - 1].seen) + "; " + described(grants[i].seen));
        if (i > 0 && grants[i].seen.acquired_at < grants[i - 1].seen.acquired_at)
            wrong.push_back("greater token, earlier grant: " + described(grants[i - 1].seen) + "; " +
                            described(grants[i].seen));
        if (grants[i].received < latest_sent)
            wrong.push_back("an earlier grant has a greater token than a later one: " + described(grants[i].seen));
        latest_sent = std::max(latest_sent, grants[i].sent);
    }
}

void lease_recorder::judge_overlap(const std::vector<entry>& grants, std::vector<std::string>& wrong) {
    for (std::size_t i = 0; i < grants.size(); ++i) {
        const entry& first = grants[i];
        const moment first_until = first.ended ? std::min(*first.ended, first.certain_until) : first.certain_until;
        for (std::size_t j = i + 1; j < grants.size(); ++j) {
            const entry& second = grants[j];
            if (second.seen.owner == first.seen.owner) continue;
            // By the clients' clocks: the second was granted at some moment within [sent, received]; all of it lies
            // where the first was certainly alive.
            if (second.sent >= first.received && second.received < first_until)
                wrong.push_back("granted while another held it: " + described(first.seen) + "; " +
                                described(second.seen));
            const moment second_until =
                second.ended ? std::min(*second.ended, second.certain_until) : second.certain_until;
            if (std::max(first.received, second.received) < std::min(first_until, second_until))
                wrong.push_back("two hold it: " + described(first.seen) + "; " + described(second.seen));
            // By the database's clock: nobody had cut the first short by then, so its written end counts.
            const bool uncut = !first.ended || *first.ended > second.received;
            if (uncut && second.seen.acquired_at < first.seen.expires_at)
                wrong.push_back("written leases overlap: " + described(first.seen) + "; " + described(second.seen));
        }
    }
}

}  // namespace holdfast::tests
