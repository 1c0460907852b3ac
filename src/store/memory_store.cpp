#include "holdfast/store/memory_store.hpp"

#include <boost/asio/awaitable.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace holdfast::store {

using namespace domain;
using boost::asio::awaitable;
using std::chrono::milliseconds;

struct memory_store::standing_place {
    std::int64_t number;
    owner_name owner;
    node_id node;
    std::int64_t attachment;
    std::optional<timestamp> kept_until;
};

/// What a lock's row holds, and its places beside it, by number.
struct memory_store::row {
    struct lease {
        owner_name owner;
        timestamp acquired_at;
        timestamp expires_at;
        std::int64_t fencing_token;
        std::optional<idempotency_key> key;
        std::optional<std::int64_t> offered_place;
        bool in_delivery = false;
    };

    std::optional<lease> held;  ///< Stays when it has ended; empty once released.
    std::vector<standing_place> places;

    lease* live(timestamp now) { return held && held->expires_at > now ? &*held : nullptr; }
    standing_place* place_of(const owner_name& owner) {
        const auto found =
            std::find_if(places.begin(), places.end(), [&](const standing_place& each) { return each.owner == owner; });
        return found == places.end() ? nullptr : &*found;
    }
    standing_place* place_at(std::int64_t number) {
        const auto found = std::find_if(places.begin(), places.end(),
                                        [&](const standing_place& each) { return each.number == number; });
        return found == places.end() ? nullptr : &*found;
    }
    void remove(std::int64_t number) {
        std::erase_if(places, [&](const standing_place& each) { return each.number == number; });
    }
    std::size_t position_of(std::int64_t number) const {
        return static_cast<std::size_t>(std::count_if(
            places.begin(), places.end(), [&](const standing_place& each) { return each.number <= number; }));
    }
};

/// What all nodes share.
class memory_store::memory {
public:
    using lease = row::lease;

    memory(memory_store::clock now, std::size_t places_max) : now(std::move(now)), places_max(places_max) {}

    row& row_of(const resource_name& resource) { return rows[resource]; }

    bool lives(const standing_place& place, timestamp at) const {
        return !place.kept_until && last_beat(place.node, at) > at - node_dead_after;
    }
    /// Kept too long, or its node died too long ago.
    bool is_gone(const standing_place& place, timestamp at) const {
        if (place.kept_until) return *place.kept_until <= at;
        return last_beat(place.node, at) <= at - node_dead_after - place_kept_for;
    }
    void prune(row& row, timestamp at) const {
        std::erase_if(row.places, [&](const standing_place& each) { return is_gone(each, at); });
    }
    standing_place* first_living(row& row, timestamp at) const {
        const auto found = std::find_if(row.places.begin(), row.places.end(),
                                        [&](const standing_place& each) { return lives(each, at); });
        return found == row.places.end() ? nullptr : &*found;
    }

    /// An offer that ended without confirmation: its place keeps its order only.
    void pass_over(row& row, timestamp at, std::vector<wake>& wakes) const {
        if (!row.held || row.live(at) || !row.held->offered_place) return;
        standing_place* const place = row.place_at(*row.held->offered_place);
        row.held->offered_place.reset();
        if (!place || place->kept_until) return;
        place->kept_until = at + place_kept_for;
        wakes.push_back({place->node, place->number});
    }
    void offer(row& row, const standing_place& to, timestamp at, std::vector<wake>& wakes) {
        row.held = lease{to.owner, at, at + offer_length, ++last_token, std::nullopt, to.number};
        wakes.push_back({to.node, to.number});
    }
    /// Nobody holds the lock any more: it goes to the first living waiter, if there is one.
    void settle(row& row, timestamp at, std::vector<wake>& wakes) {
        if (row.live(at)) return;
        pass_over(row, at, wakes);
        prune(row, at);
        if (const standing_place* const first = first_living(row, at)) offer(row, *first, at, wakes);
    }
    /// The offer to this place, if there is one, passes on; an ended lease is handed over as well.
    void pass_on(row& row, std::int64_t number, timestamp at, std::vector<wake>& wakes) {
        const lease* const live = row.live(at);
        if (live && live->offered_place == number) row.held.reset();
        settle(row, at, wakes);
    }
    lease& grant(row& row, const acquire_command& command, timestamp at) {
        row.held = lease{command.owner(), at, at + command.ttl().length(), ++last_token, command.key(), std::nullopt};
        return *row.held;
    }

    static lock describe(const resource_name& resource, const lease& lease, timestamp at) {
        return lock(resource, lease.owner, lease.acquired_at, lease.expires_at,
                    std::chrono::floor<milliseconds>(lease.expires_at - at),
                    *fencing_token::parse(lease.fencing_token));
    }
    static milliseconds left(row& row, timestamp at) {
        const lease* const live = row.live(at);
        return live ? std::chrono::ceil<milliseconds>(live->expires_at - at) : milliseconds(0);
    }
    static milliseconds retry_after(row& row, timestamp at) { return std::max(left(row, at), milliseconds(1)); }

    memory_store::clock now;
    std::size_t places_max;
    std::map<resource_name, row> rows;
    std::map<node_id, std::optional<timestamp>> silent_since;  ///< Nothing: it beats all the time.
    std::map<node_id, std::vector<std::int64_t>> announced;
    std::int64_t last_node = 0;
    std::int64_t last_token = 0;
    std::int64_t last_place = 0;
    std::int64_t last_attachment = 0;

private:
    timestamp last_beat(node_id node, timestamp at) const { return silent_since.at(node).value_or(at); }
};

// ---- Nodes
// -------------------------------------------------------------------------------------------------------------

memory_store::memory_store(clock now, std::size_t places_per_resource_max)
    : memory_store(std::make_shared<memory>(std::move(now), places_per_resource_max)) {}

memory_store::memory_store(std::shared_ptr<memory> memory)
    : memory_(std::move(memory)), node_(static_cast<node_id>(++memory_->last_node)) {
    memory_->silent_since[node_];
    memory_->announced[node_];
}

memory_store::~memory_store() {
    memory_->silent_since[node_] = timestamp::min();
}

std::unique_ptr<memory_store> memory_store::another_node() {
    return std::unique_ptr<memory_store>(new memory_store(memory_));
}

std::optional<node_id> memory_store::node() const noexcept {
    const auto silent_since = memory_->silent_since.at(node_);
    if (silent_since && *silent_since <= memory_->now() - node_dead_after) return std::nullopt;
    return node_;
}

void memory_store::beats(bool does) {
    memory_->silent_since[node_] = does ? std::nullopt : std::optional(memory_->now());
}

void memory_store::announce(std::vector<wake> wakes) {
    for (const wake& each : wakes)
        memory_->announced[each.node].push_back(each.place_number);
}

/// One place of a node stands for all.
void memory_store::announce_moved(resource_name resource) {
    const timestamp now = memory_->now();
    std::map<node_id, std::int64_t> firsts;
    for (const standing_place& each : memory_->row_of(resource).places)
        if (memory_->lives(each, now)) firsts.emplace(each.node, each.number);
    for (const auto& [node, number] : firsts)
        memory_->announced[node].push_back(number);
}

bool memory_store::deliver() {
    auto announced = std::exchange(memory_->announced[node_], {});
    if (announced.empty()) return false;
    if (events_.woken) events_.woken(std::move(announced));
    return true;
}

void memory_store::lose_announcements() {
    memory_->announced[node_].clear();
}

void memory_store::survey(std::chrono::steady_clock::time_point began) {
    const timestamp now = memory_->now();
    std::vector<surveyed_place> places;
    for (auto& [resource, row] : memory_->rows)
        for (const standing_place& each : row.places) {
            if (each.node != node_ || each.kept_until) continue;
            const row::lease* const live = row.live(now);
            places.emplace_back(place(resource, each.number, each.attachment),
                                live && live->offered_place == each.number, memory::left(row, now));
        }
    if (events_.surveyed) events_.surveyed(std::move(places), began);
}

// ---- Leases
// ------------------------------------------------------------------------------------------------------------

awaitable<result<acquire_outcome>> memory_store::acquire(acquire_command command, deadline) {
    const timestamp now = memory_->now();
    row& row = memory_->row_of(command.resource());
    const bool is_awaited = !row.places.empty();
    if (auto* const held = row.live(now)) {
        if (held->owner != command.owner()) co_return acquire_outcome::held(memory::retry_after(row, now));
        if (held->offered_place) co_return acquire_outcome::awaited();
        if (command.key() && held->key == command.key()) {
            held->in_delivery = false;
            co_return acquire_outcome::granted(memory::describe(command.resource(), *held, now));
        }
    } else if (is_awaited) {
        co_return acquire_outcome::awaited();
    }
    auto& grant = memory_->grant(row, command, now);
    grant.in_delivery = command.is_returnable();
    co_return acquire_outcome::granted(memory::describe(command.resource(), grant, now), is_awaited);
}

awaitable<result<renew_outcome>> memory_store::renew(renew_command command, deadline) {
    const timestamp now = memory_->now();
    row& row = memory_->row_of(command.resource());
    auto* const held = row.live(now);
    if (!held) co_return renew_outcome::not_found();
    if (held->owner != command.owner()) co_return renew_outcome::forbidden();
    if (held->offered_place) co_return renew_outcome::not_found();
    if (command.fencing_token() && command.fencing_token()->number() != held->fencing_token)
        co_return renew_outcome::forbidden();
    held->expires_at = now + command.ttl().length();
    held->in_delivery = false;
    co_return renew_outcome::renewed(memory::describe(command.resource(), *held, now), !row.places.empty());
}

awaitable<result<release_result>> memory_store::release(release_command command, deadline) {
    const timestamp now = memory_->now();
    row& row = memory_->row_of(command.resource());
    const auto* const held = row.live(now);
    if (!held) co_return release_result::not_found;
    if (held->owner != command.owner()) co_return release_result::forbidden;
    if (command.fencing_token() && command.fencing_token()->number() != held->fencing_token)
        co_return release_result::forbidden;
    if (!row.places.empty()) co_return release_result::awaited;
    row.held.reset();
    co_return release_result::released;
}

awaitable<result<look_outcome>> memory_store::look(look_command command, deadline) {
    const timestamp now = memory_->now();
    const auto* const held = memory_->row_of(command.resource()).live(now);
    if (!held) co_return look_outcome::not_found();
    co_return look_outcome::found(memory::describe(command.resource(), *held, now));
}

// ---- Waiting lines
// -----------------------------------------------------------------------------------------------------

awaitable<result<stand_outcome>> memory_store::stand(stand_command command, deadline) {
    const timestamp now = memory_->now();
    const acquire_command& ask = command.ask();
    row& row = memory_->row_of(command.resource());
    stand_outcome outcome{queue_full(), {}};
    memory_->prune(row, now);

    auto* const held = row.live(now);
    const bool is_own = held && held->owner == ask.owner();
    if (is_own && !held->offered_place && ask.key() && held->key == ask.key()) {
        held->in_delivery = false;
        outcome.answer = queue_grant(memory::describe(command.resource(), *held, now));
        co_return outcome;
    }
    if (!held) memory_->pass_over(row, now, outcome.wakes);
    standing_place* const mine = row.place_of(ask.owner());
    const standing_place* const first = held ? nullptr : memory_->first_living(row, now);
    if (is_own || (!held && (!first || (mine && first->number >= mine->number)))) {
        if (mine && !mine->kept_until) outcome.wakes.push_back({mine->node, mine->number});
        if (mine) row.remove(mine->number);
        auto& grant = memory_->grant(row, ask, now);
        grant.in_delivery = command.node().has_value();
        outcome.answer = queue_grant(memory::describe(command.resource(), grant, now));
        co_return outcome;
    }
    if (first) memory_->offer(row, *first, now, outcome.wakes);
    if (!command.node()) {
        outcome.answer = queue_refusal(memory::retry_after(row, now));
        co_return outcome;
    }
    if (!mine && row.places.size() >= memory_->places_max) co_return outcome;

    const std::int64_t attachment = ++memory_->last_attachment;
    std::int64_t number = 0;
    if (mine) {
        if (!mine->kept_until) outcome.wakes.push_back({mine->node, mine->number});
        number = mine->number;
        *mine = standing_place{number, ask.owner(), *command.node(), attachment, std::nullopt};
    } else {
        number = ++memory_->last_place;
        row.places.push_back({number, ask.owner(), *command.node(), attachment, std::nullopt});
    }
    outcome.answer =
        queue_standing(place(command.resource(), number, attachment), row.position_of(number), memory::left(row, now));
    co_return outcome;
}

awaitable<result<claim_outcome>> memory_store::claim(claim_command command, deadline) {
    const timestamp now = memory_->now();
    row& row = memory_->row_of(command.resource());
    auto* const held = row.live(now);
    const bool is_own = held && held->owner == command.ask().owner();
    const standing_place* const mine = row.place_at(command.place().number());
    if (mine && mine->attachment == command.place().attachment()) {
        if (mine->kept_until || !is_own || held->offered_place != mine->number)
            co_return claim_outcome(not_offered(memory::left(row, now), mine->kept_until.has_value()));
        row.remove(mine->number);
        held->acquired_at = now;
        held->expires_at = now + command.ask().ttl().length();
        held->key = command.ask().key();
        held->offered_place.reset();
        held->in_delivery = true;
        co_return claim_outcome(queue_grant(memory::describe(command.resource(), *held, now)));
    }
    if (is_own && !held->offered_place && command.ask().key() && held->key == command.ask().key()) {
        held->in_delivery = false;
        co_return claim_outcome(queue_grant(memory::describe(command.resource(), *held, now)));
    }
    co_return claim_outcome(place_gone());
}

awaitable<result<withdraw_outcome>> memory_store::withdraw(withdraw_command command, deadline) {
    const timestamp now = memory_->now();
    row& row = memory_->row_of(command.resource());
    const std::int64_t number = command.place().number();
    standing_place* const mine = row.place_at(number);
    withdraw_outcome outcome{place_gone(), {}};
    if (!mine || mine->attachment != command.place().attachment()) co_return outcome;
    mine->kept_until = now + place_kept_for;
    memory_->pass_on(row, number, now, outcome.wakes);
    outcome.answer = place_kept(row.position_of(number), memory::retry_after(row, now));
    co_return outcome;
}

awaitable<result<leave_outcome>> memory_store::leave(leave_command command, deadline) {
    const timestamp now = memory_->now();
    row& row = memory_->row_of(command.resource());
    leave_outcome outcome;
    memory_->prune(row, now);
    const standing_place* const found = row.place_of(command.owner());
    if (!found) co_return outcome;
    const standing_place mine = *found;
    row.remove(mine.number);
    outcome.result = leave_result::left;
    if (!mine.kept_until) outcome.wakes.push_back({mine.node, mine.number});
    memory_->pass_on(row, mine.number, now, outcome.wakes);
    co_return outcome;
}

awaitable<result<hand_over_outcome>> memory_store::hand_over(hand_over_command command, deadline) {
    const timestamp now = memory_->now();
    row& row = memory_->row_of(command.resource());
    hand_over_outcome outcome;
    memory_->settle(row, now, outcome.wakes);
    if (row.live(now)) outcome.ends_in = memory::left(row, now);
    co_return outcome;
}

awaitable<result<queue_release_outcome>> memory_store::release(queue_release_command command, deadline) {
    const timestamp now = memory_->now();
    const release_command& release = command.release();
    row& row = memory_->row_of(command.resource());
    const auto* const held = row.live(now);
    queue_release_outcome outcome;
    if (!held || (held->offered_place && held->owner == release.owner())) {
        memory_->settle(row, now, outcome.wakes);
    } else if (held->owner != release.owner() ||
               (release.fencing_token() && release.fencing_token()->number() != held->fencing_token) ||
               (command.given_back() && !held->in_delivery)) {
        outcome.result = release_result::forbidden;
    } else {
        row.held.reset();
        memory_->settle(row, now, outcome.wakes);
        outcome.result = release_result::released;
    }
    co_return outcome;
}

}  // namespace holdfast::store
