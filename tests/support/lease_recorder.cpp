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
    record& record = by_resource_[grant.resource];
    // The owner's acquire replaced what it held: that one may have ended at any time since this request was sent.
    end_all(record, grant.owner, when.sent);
    record.open[grant.owner].push_back(record.grants.size());
    record.by_token.emplace(grant.token, record.grants.size());
    record.grants.push_back({grant, when.sent, when.received, when.sent + grant.expires_in, std::nullopt});
}

void lease_recorder::renewed(const lease& lease, span when) {
    const std::lock_guard guard(mutex_);
    record& record = by_resource_[lease.resource];
    const auto found = record.by_token.find(lease.token);
    if (found == record.by_token.end()) {
        outside_.push_back("renewed, never granted: " + described(lease));
        return;
    }
    entry& granted = record.grants[found->second];
    if (granted.seen.owner != lease.owner || granted.seen.acquired_at != lease.acquired_at)
        outside_.push_back("renewed " + described(lease) + " but granted " + described(granted.seen));
    granted.seen.expires_at = lease.expires_at;
    granted.certain_until = when.sent + lease.expires_in;
}

void lease_recorder::ended(const std::string& resource, const std::string& owner, moment sent) {
    const std::lock_guard guard(mutex_);
    end_all(by_resource_[resource], owner, sent);
}

void lease_recorder::end_all(record& record, const std::string& owner, moment sent) {
    for (const std::size_t each : std::exchange(record.open[owner], {}))
        record.grants[each].ended = sent;
}

void lease_recorder::outside_the_contract(std::string what) {
    const std::lock_guard guard(mutex_);
    outside_.push_back(std::move(what));
}

std::size_t lease_recorder::grants() const {
    const std::lock_guard guard(mutex_);
    std::size_t count = 0;
    for (const auto& [resource, record] : by_resource_)
        count += record.grants.size();
    return count;
}

std::vector<std::string> lease_recorder::violations() const {
    const std::lock_guard guard(mutex_);
    std::vector<std::string> wrong = outside_;
    for (const auto& [resource, record] : by_resource_) {
        auto grants = record.grants;
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

lease_recorder::moment lease_recorder::certain_end(const entry& grant) {
    return grant.ended ? std::min(*grant.ended, grant.certain_until) : grant.certain_until;
}

/// The earliest of all grants from a place in the list on, so that nobody looks at pairs that lie far apart.
class lease_recorder::later_grants {
public:
    explicit later_grants(const std::vector<entry>& grants) : received_(grants.size()), acquired_at_(grants.size()) {
        for (std::size_t i = grants.size(); i-- > 0;) {
            const bool is_last = i + 1 == grants.size();
            received_[i] = is_last ? grants[i].received : std::min(grants[i].received, received_[i + 1]);
            acquired_at_[i] =
                is_last ? grants[i].seen.acquired_at : std::min(grants[i].seen.acquired_at, acquired_at_[i + 1]);
        }
    }

    /// False when judge_pair() can say nothing against `first` and any grant from `place` on.
    bool may_overlap(const entry& first, std::size_t place) const {
        if (received_[place] < first.ended.value_or(first.certain_until)) return true;
        return !first.ended && acquired_at_[place] < first.seen.expires_at;
    }

private:
    std::vector<moment> received_;
    std::vector<std::string> acquired_at_;
};

void lease_recorder::judge_overlap(const std::vector<entry>& grants, std::vector<std::string>& wrong) {
    const later_grants later(grants);
    for (std::size_t i = 0; i < grants.size(); ++i)
        for (std::size_t j = i + 1; j < grants.size() && later.may_overlap(grants[i], j); ++j)
            if (grants[j].seen.owner != grants[i].seen.owner) judge_pair(grants[i], grants[j], wrong);
}

void lease_recorder::judge_pair(const entry& first, const entry& second, std::vector<std::string>& wrong) {
    const moment first_until = certain_end(first);
    // By the clients' clocks: the second was granted at some moment within [sent, received]; all of it lies where the
    // first was certainly alive.
    if (second.sent >= first.received && second.received < first_until)
        wrong.push_back("granted while another held it: " + described(first.seen) + "; " + described(second.seen));
    if (std::max(first.received, second.received) < std::min(first_until, certain_end(second)))
        wrong.push_back("two hold it: " + described(first.seen) + "; " + described(second.seen));
    // By the database's clock: nobody had cut the first short by then, so its written end counts.
    const bool uncut = !first.ended || *first.ended > second.received;
    if (uncut && second.seen.acquired_at < first.seen.expires_at)
        wrong.push_back("written leases overlap: " + described(first.seen) + "; " + described(second.seen));
}

}  // namespace holdfast::tests
