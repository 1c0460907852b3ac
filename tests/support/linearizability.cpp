#include "support/linearizability.hpp"

#include <algorithm>
#include <compare>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

namespace holdfast::tests {
namespace {

using microseconds = std::int64_t;  // Moments since the epoch, and lengths.

/// Bounds of the search: for one answer, and for all of them beside so many for each.
constexpr std::size_t states_max = 10'000;
constexpr std::size_t steps_max = 60'000;
constexpr std::size_t steps_max_per_call = 30;
/// Searches with few unknown operations before the one with all.
constexpr int attempts_max = 60;
constexpr std::size_t events_back = 100;
constexpr std::size_t spare_max = 4;
constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();

struct range {
    microseconds from = 0;
    microseconds to = 0;

    bool has(microseconds moment) const { return from <= moment && moment <= to; }
    bool empty() const { return from > to; }
    auto operator<=>(const range&) const = default;
};

range overlap(range left, range right) {
    return {std::max(left.from, right.from), std::min(left.to, right.to)};
}

/// What the lock may be. Its owner and key are those of the acquire that made the grant.
struct lock_state {
    std::size_t made_by = nobody;  ///< The acquire; `nobody`: free.
    std::int64_t token = 0;        ///< Of the last grant; the least it can be when `exact_token` is false.
    bool exact_token = true;
    range acquired;
    range ends;
    microseconds whole = 0;  ///< When not 0: the end is that long after acquired_at.
    microseconds stamp = 0;  ///< The last reading of the clock that the row has seen, at least.
    microseconds since = 0;  ///< The earliest moment at which this state can have begun.

    bool held() const { return made_by != nobody; }
    auto operator<=>(const lock_state&) const = default;
};

/// One way things may have gone so far.
struct way {
    lock_state state;
    std::vector<std::size_t> done;  ///< Answered operations that were carried out and have not returned. Sorted.
    std::vector<std::size_t> used;  ///< Unknown ones that took effect. Sorted.

    bool has_done(std::size_t call) const { return std::binary_search(done.begin(), done.end(), call); }
    bool has_used(std::size_t call) const { return std::binary_search(used.begin(), used.end(), call); }
    auto operator<=>(const way&) const = default;
};

/// Whether whatever can follow on `right` can also follow on `left`.
bool as_good_as(const way& left, const way& right) {
    if (left.done != right.done || left.state.since > right.state.since || left.state.stamp > right.state.stamp)
        return false;
    lock_state same = right.state;
    same.since = left.state.since;
    same.stamp = left.state.stamp;
    return left.state == same &&
           std::includes(right.used.begin(), right.used.end(), left.used.begin(), left.used.end());
}

void insert_sorted(std::vector<std::size_t>& numbers, std::size_t number) {
    numbers.insert(std::lower_bound(numbers.begin(), numbers.end(), number), number);
}

void erase_sorted(std::vector<std::size_t>& numbers, std::size_t number) {
    const auto found = std::lower_bound(numbers.begin(), numbers.end(), number);
    if (found != numbers.end() && *found == number) numbers.erase(found);
}

/// What one operation does to a state, or what it can be told in it.
class lock_rules {
public:
    explicit lock_rules(const std::vector<lock_call>& calls) : calls_(calls) {}

    /// Whether `call` can have been told what it was told, by a look at `state` up to `now`. The state with what the
    /// answer says about it.
    std::optional<lock_state> told(std::size_t number, const lock_state& state, microseconds now) const {
        const lock_call& call = calls_[number];
        const range when{std::max(state.since, call.called_us), std::min(now, call.returned_us)};
        if (when.empty()) return std::nullopt;
        const bool live = state.held() && when.from < state.ends.to;
        switch (call.answer) {
            case call_answer::lease:
                return live ? shown(call, state, when) : std::nullopt;
            case call_answer::refused:
                return keep_if(live && calls_[state.made_by].owner != call.owner && left_fits(call, state, when),
                               state);
            case call_answer::not_found:
                return keep_if(!state.held() || when.to >= state.ends.from, state);
            case call_answer::forbidden:
                return keep_if(live && not_the_holder(call, state), state);
            case call_answer::released:
            case call_answer::unknown:
                break;
        }
        return std::nullopt;
    }

    /// An acquire that was answered with a lease makes that grant, stamped `acquired_us`.
    std::optional<lock_state> grant(std::size_t number, const lock_state& state, microseconds acquired_us) const {
        const lock_call& call = calls_[number];
        if (call.shown_owner != call.owner || call.expires_at_us - call.acquired_at_us != call.ttl_us)
            return std::nullopt;
        if (!range{call.called_us, call.returned_us}.has(acquired_us) || acquired_us < state.stamp) return std::nullopt;
        if (!clock_fits(call, {acquired_us, call.returned_us})) return std::nullopt;
        const bool same = state.held() && state.token == call.shown_token && calls_[state.made_by].owner == call.owner;
        const bool anew = same && state.made_by == number && state.acquired.to < acquired_us;
        if (!anew && call.shown_token <= state.token) return std::nullopt;
        if (!anew && earliest_grant(call, state) > acquired_us) return std::nullopt;
        lock_state next;
        next.made_by = number;
        next.token = call.shown_token;
        next.acquired = {acquired_us, acquired_us};
        next.ends = {acquired_us + call.ttl_us, acquired_us + call.ttl_us};
        next.stamp = acquired_us;
        next.since = std::max(state.since, acquired_us);
        return next;
    }

    std::optional<lock_state> renew(std::size_t number, const lock_state& state) const {
        const lock_call& call = calls_[number];
        const microseconds stamp = call.expires_at_us - call.ttl_us;
        if (call.shown_owner != call.owner || (call.token && *call.token != call.shown_token)) return std::nullopt;
        if (!state.held() || calls_[state.made_by].owner != call.owner || state.ends.to <= stamp) return std::nullopt;
        if (!range{call.called_us, call.returned_us}.has(stamp) || stamp < state.stamp) return std::nullopt;
        if (!clock_fits(call, {stamp, call.returned_us})) return std::nullopt;
        auto next = identified(call, state);
        if (!next) return std::nullopt;
        next->ends = {call.expires_at_us, call.expires_at_us};
        next->whole = 0;
        next->stamp = stamp;
        next->since = std::max(state.since, stamp);
        return next;
    }

    /// Also of unknown outcome: then by `now`.
    std::optional<lock_state> release(std::size_t number, const lock_state& state, microseconds now) const {
        const lock_call& call = calls_[number];
        const range when = stamps_of_holder(call, state, now);
        if (when.empty()) return std::nullopt;
        lock_state next;
        next.token = call.token && !state.exact_token ? *call.token : state.token;
        next.exact_token = state.exact_token || call.token;
        next.stamp = when.from;
        next.since = std::max(state.since, when.from);
        return next;
    }

    std::optional<lock_state> unknown_grant(std::size_t number, const lock_state& state, microseconds now) const {
        const lock_call& call = calls_[number];
        const range when{std::max({call.called_us, state.stamp, earliest_grant(call, state)}),
                         std::min(now, call.returned_us)};
        if (when.empty()) return std::nullopt;
        lock_state next;
        next.made_by = number;
        next.token = state.token + 1;
        next.exact_token = false;
        next.acquired = when;
        next.ends = {when.from + call.ttl_us, when.to + call.ttl_us};
        next.whole = call.ttl_us;
        next.stamp = when.from;
        next.since = std::max(state.since, when.from);
        return next;
    }

    std::optional<lock_state> unknown_renew(std::size_t number, const lock_state& state, microseconds now) const {
        const lock_call& call = calls_[number];
        const range when = stamps_of_holder(call, state, now);
        if (when.empty()) return std::nullopt;
        lock_state next = state;
        if (call.token) next.token = *call.token;
        next.exact_token = state.exact_token || call.token;
        next.ends = {when.from + call.ttl_us, when.to + call.ttl_us};
        next.whole = 0;
        next.stamp = when.from;
        next.since = std::max(state.since, when.from);
        return next;
    }

private:
    static std::optional<lock_state> keep_if(bool fits, const lock_state& state) {
        return fits ? std::optional(state) : std::nullopt;
    }

    /// The first moment at which an acquire makes a new grant in this state.
    microseconds earliest_grant(const lock_call& call, const lock_state& state) const {
        if (!state.held()) return 0;
        const lock_call& maker = calls_[state.made_by];
        const bool replay = !call.key.empty() && call.key == maker.key;
        return maker.owner == call.owner && !replay ? 0 : state.ends.from;
    }

    /// The stamps that a holder's renew or release may have; empty for others.
    range stamps_of_holder(const lock_call& call, const lock_state& state, microseconds now) const {
        static constexpr range none{1, 0};
        if (!state.held() || calls_[state.made_by].owner != call.owner) return none;
        if (call.token && (state.exact_token ? *call.token != state.token : *call.token < state.token)) return none;
        return {std::max(call.called_us, state.stamp), std::min({now, call.returned_us, state.ends.to - 1})};
    }

    bool not_the_holder(const lock_call& call, const lock_state& state) const {
        const bool other_token = call.token && (!state.exact_token || *call.token != state.token);
        return calls_[state.made_by].owner != call.owner || other_token;
    }

    /// The lease is that of the answer: its owner, token and acquired_at.
    std::optional<lock_state> identified(const lock_call& call, const lock_state& state) const {
        if (calls_[state.made_by].owner != call.shown_owner || !state.acquired.has(call.acquired_at_us))
            return std::nullopt;
        if (state.exact_token ? state.token != call.shown_token : state.token > call.shown_token) return std::nullopt;
        lock_state next = state;
        next.token = call.shown_token;
        next.exact_token = true;
        next.acquired = {call.acquired_at_us, call.acquired_at_us};
        if (state.whole > 0) {
            const microseconds end = call.acquired_at_us + state.whole;
            next.ends = {end, end};
            next.whole = 0;
        }
        return next;
    }

    /// A look, or an acquire that repeats its key.
    std::optional<lock_state> shown(const lock_call& call, const lock_state& state, range when) const {
        if (call.kind == call_kind::renew) return std::nullopt;
        const lock_call& maker = calls_[state.made_by];
        const bool repeats = call.shown_owner == call.owner && !call.key.empty() && call.key == maker.key;
        if (call.kind == call_kind::acquire && !repeats) return std::nullopt;
        auto next = identified(call, state);
        if (!next || !next->ends.has(call.expires_at_us)) return std::nullopt;
        if (!clock_fits(call, {when.from, call.returned_us})) return std::nullopt;
        next->ends = {call.expires_at_us, call.expires_at_us};
        return next;
    }

    /// What is left was computed, rounded down, from a reading of the clock within `when`.
    static bool clock_fits(const lock_call& call, range when) {
        const microseconds left = call.expires_in_ms * 1'000;
        const range readings{call.expires_at_us - left - 999, call.expires_at_us - left};
        return !overlap(readings, when).empty();
    }

    /// What is left was computed, rounded up, from a reading of the clock within `when` or later.
    static bool left_fits(const lock_call& call, const lock_state& state, range when) {
        const microseconds left = call.retry_after_ms * 1'000;
        const range ends{when.from + left - 999, call.returned_us + left};
        return !overlap(ends, state.ends).empty();
    }

    const std::vector<lock_call>& calls_;
};

/// One search. For the answer of event n, ways that take up to `spares[n]` more unknown operations than the way with
/// the fewest are followed.
class search {
public:
    search(const std::vector<lock_call>& calls, const std::vector<std::size_t>& spares)
        : calls_(calls), rules_(calls), spares_(spares) {
        for (const lock_call& call : calls)
            if (call.answer == call_answer::lease) stamps_[call.shown_token].insert(call.acquired_at_us);
    }

    history_judgement run() {
        ways_.insert(way{});
        for (const event& each : events()) {
            spare_ = spares_[reached_++];
            if (!each.returns) {
                (calls_[each.call].answer == call_answer::unknown ? unknown_ : open_).push_back(each.call);
                continue;
            }
            answer_returns(each.call);
            judgement_.states_max = std::max(judgement_.states_max, ways_.size());
            if (ways_.empty()) return judgement_;
        }
        judgement_.unknowns = std::min_element(ways_.begin(), ways_.end(), fewer_used)->used.size();
        return judgement_;
    }

    /// How many events it has come through, with the one that it could not explain.
    std::size_t reached() const { return reached_; }

private:
    struct event {
        microseconds when;
        bool returns;  ///< Calls come before returns of the same moment.
        std::size_t call;
        auto operator<=>(const event&) const = default;
    };

    static bool fewer_used(const way& left, const way& right) { return left.used.size() < right.used.size(); }

    std::vector<event> events() const {
        std::vector<event> all;
        for (std::size_t call = 0; call < calls_.size(); ++call) {
            all.push_back({calls_[call].called_us, false, call});
            if (calls_[call].answer != call_answer::unknown) all.push_back({calls_[call].returned_us, true, call});
        }
        std::sort(all.begin(), all.end());
        return all;
    }

    void answer_returns(std::size_t call) {
        now_ = calls_[call].returned_us;
        const std::set<way> before = std::exchange(ways_, {});
        // By how many unknown operations they take.
        std::vector<std::set<way>> levels(1);
        for (way each : before) {
            explain_reads(each);
            levels[0].insert(std::move(each));
        }
        std::optional<std::size_t> first;
        std::size_t left = states_max;
        for (std::size_t level = 0; level < levels.size() && left > 0; ++level) {
            if (first && level > *first + spare_) break;
            explore(call, levels, level, left);
            if (!first && !ways_.empty()) first = level;
        }
        if (ways_.empty()) tell(call, before);
        std::erase(open_, call);
        drop_the_pointless();
        forget_the_final();
    }

    /// Carries out everything that may come before the return of `call`, in every order, until it is carried out.
    void explore(std::size_t call, std::vector<std::set<way>>& levels, std::size_t level, std::size_t& left) {
        std::set<way> seen;
        while (!levels[level].empty()) {
            way each = std::move(levels[level].extract(levels[level].begin()).value());
            if (each.has_done(call)) {
                erase_sorted(each.done, call);
                ways_.insert(std::move(each));
                continue;
            }
            if (left == 0 || ++steps_ > steps_max + steps_max_per_call * calls_.size()) {
                left = 0;
                incomplete_ = true;
                return;
            }
            --left;
            if (!seen.insert(each).second) continue;
            for (const std::size_t other : open_)
                if (!each.has_done(other)) carry_out(other, each, levels[level]);
            if (levels.size() == level + 1) levels.emplace_back();
            for (const std::size_t other : unknown_)
                if (!each.has_used(other) && !as_well_by_another(other, each))
                    carry_out_unknown(other, each, levels[level + 1]);
        }
        if (levels.size() > level + 1 && levels[level + 1].empty()) levels.resize(level + 1);
    }

    void carry_out(std::size_t number, const way& from, std::set<way>& into) {
        const lock_call& call = calls_[number];
        std::optional<lock_state> next;
        if (call.kind == call_kind::acquire && call.answer == call_answer::lease) {
            // Others may have seen it under a stamp that the store replaced before it answered.
            for (const microseconds stamp : stamps_[call.shown_token])
                if (stamp < call.acquired_at_us) add(from, rules_.grant(number, from.state, stamp), nobody, into);
            next = rules_.grant(number, from.state, call.acquired_at_us);
        } else if (call.kind == call_kind::renew && call.answer == call_answer::lease) {
            next = rules_.renew(number, from.state);
        } else if (call.answer == call_answer::released) {
            next = rules_.release(number, from.state, now_);
        }
        add(from, next, number, into);
        // What this answer shows may also be what an unknown operation did.
        add(from, rules_.told(number, from.state, now_), number, into);
    }

    void add(const way& from, const std::optional<lock_state>& next, std::size_t carried_out, std::set<way>& into) {
        if (!next || next->stamp > now_) return;
        way reached{*next, from.done, from.used};
        if (carried_out != nobody) insert_sorted(reached.done, carried_out);
        explain_reads(reached);
        into.insert(std::move(reached));
    }

    /// Of operations that are alike, the one that is final first may as well be it.
    bool as_well_by_another(std::size_t number, const way& from) const {
        const lock_call& call = calls_[number];
        return std::any_of(unknown_.begin(), unknown_.end(), [&](std::size_t other) {
            const lock_call& like = calls_[other];
            return other != number && !from.has_used(other) && like.called_us <= call.called_us &&
                   now_ <= like.returned_us && like.returned_us <= call.returned_us && like.kind == call.kind &&
                   like.owner == call.owner && like.key == call.key && like.token == call.token &&
                   like.ttl_us == call.ttl_us && std::tie(like.called_us, other) < std::tie(call.called_us, number);
        });
    }

    void carry_out_unknown(std::size_t number, const way& from, std::set<way>& into) {
        if (calls_[number].returned_us < from.state.since) return;
        std::optional<lock_state> next;
        switch (calls_[number].kind) {
            case call_kind::acquire:
                next = rules_.unknown_grant(number, from.state, now_);
                break;
            case call_kind::renew:
                next = rules_.unknown_renew(number, from.state, now_);
                break;
            case call_kind::release:
                next = rules_.release(number, from.state, now_);
                break;
            case call_kind::look:
                break;
        }
        if (!next) return;
        way reached{*next, from.done, from.used};
        insert_sorted(reached.used, number);
        explain_reads(reached);
        into.insert(std::move(reached));
    }

    /// Carries out everything open that this state explains and that changes nothing, also nothing that we know.
    void explain_reads(way& each) const {
        for (const std::size_t call : open_)
            if (!each.has_done(call) && rules_.told(call, each.state, now_) == each.state)
                insert_sorted(each.done, call);
    }

    /// Ways that can lead nowhere where another cannot lead too.
    void drop_the_pointless() {
        std::vector<way> kept;
        for (const way& each : ways_) {
            if (std::any_of(kept.begin(), kept.end(), [&](const way& other) { return as_good_as(other, each); }))
                continue;
            std::erase_if(kept, [&](const way& other) { return as_good_as(each, other); });
            kept.push_back(each);
        }
        ways_ = std::set<way>(kept.begin(), kept.end());
    }

    /// What can play no part any more need not tell ways apart.
    void forget_the_final() {
        microseconds earliest = now_;
        for (const way& each : ways_)
            earliest = std::min(earliest, each.state.since);
        std::erase_if(unknown_, [&](std::size_t call) { return calls_[call].returned_us < earliest; });
    }

    void tell(std::size_t call, const std::set<way>& before) {
        judgement_.verdict = incomplete_ ? history_verdict::undecided : history_verdict::illegal;
        std::ostringstream text;
        text << "no explanation for\n  " << calls_[call].text() << "\nwhen the lock may have been";
        std::size_t shown = 0;
        for (const way& each : before) {
            if (++shown > 5) break;
            text << "\n  " << described(each);
        }
        text << "\nand these were under way:";
        for (const std::size_t other : open_)
            if (other != call) text << "\n  " << calls_[other].text();
        text << "\nand the last to return before were:";
        for (const std::size_t other : last_returned(calls_[call].called_us))
            text << "\n  " << calls_[other].text();
        judgement_.why = text.str();
    }

    std::string described(const way& each) const {
        std::ostringstream text;
        const lock_state& state = each.state;
        if (state.held())
            text << "held by " << calls_[state.made_by].owner << " key '" << calls_[state.made_by].key << "' token "
                 << state.token << (state.exact_token ? "" : " or more") << " until " << state.ends.from << ".."
                 << state.ends.to;
        else
            text << "free, last token " << state.token;
        text << ", stamp " << state.stamp << ", " << each.used.size() << " unknown used";
        return text.str();
    }

    std::vector<std::size_t> last_returned(microseconds before) const {
        std::vector<std::size_t> found;
        for (std::size_t call = 0; call < calls_.size(); ++call)
            if (calls_[call].returned_us <= before) found.push_back(call);
        std::sort(found.begin(), found.end(), [&](std::size_t left, std::size_t right) {
            return calls_[left].returned_us > calls_[right].returned_us;
        });
        found.resize(std::min<std::size_t>(found.size(), 8));
        return found;
    }

    const std::vector<lock_call>& calls_;
    lock_rules rules_;
    const std::vector<std::size_t>& spares_;
    std::size_t spare_ = 0;
    std::size_t reached_ = 0;
    std::map<std::int64_t, std::set<microseconds>> stamps_;  ///< All that answers showed, by token.
    std::set<way> ways_;
    std::vector<std::size_t> open_;     ///< Answered, called, not returned.
    std::vector<std::size_t> unknown_;  ///< Called, may take effect.
    microseconds now_ = 0;
    std::size_t steps_ = 0;
    bool incomplete_ = false;  ///< Not all ways were tried.
    history_judgement judgement_;
};

}  // namespace

history_judgement judge_history(const std::vector<lock_call>& calls, std::int64_t skew_us) {
    std::vector<lock_call> widened = calls;
    for (lock_call& call : widened) {
        call.called_us -= skew_us;
        call.returned_us += skew_us;
    }
    // Where no explanation is found with few unknown operations, more of them are tried in the events before.
    std::vector<std::size_t> spares(2 * widened.size(), 0);
    for (int attempt = 0; attempt < attempts_max; ++attempt) {
        search few(widened, spares);
        const history_judgement judgement = few.run();
        if (judgement.verdict == history_verdict::legal) return judgement;
        const std::size_t end = few.reached();
        const std::size_t begin = end - std::min(end, events_back);
        if (spares[end - 1] >= spare_max) break;
        for (std::size_t event = begin; event < end; ++event)
            spares[event] = std::max(spares[event], spares[end - 1] + (event + 1 < end ? 1 : 0));
        ++spares[end - 1];
    }
    std::fill(spares.begin(), spares.end(), widened.size());
    return search(widened, spares).run();
}

}  // namespace holdfast::tests
