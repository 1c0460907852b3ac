#ifndef HOLDFAST_DOMAIN_QUEUE_COMMANDS_HPP
#define HOLDFAST_DOMAIN_QUEUE_COMMANDS_HPP

// What is asked of a queue of waiters (store/wait_queue.hpp). Classes with constructors, as in commands.hpp.

#include "holdfast/domain/commands.hpp"
#include "holdfast/domain/place.hpp"

#include <optional>
#include <utility>

namespace holdfast::domain {

/// Acquire where others wait, or wait oneself: the lock if it is free and no living waiter stands before the owner's
/// place, else a place (the owner's present one, if there is one), if the request waits.
class stand_command {
public:
    /// `node` is where the request waits; nothing for one that does not wait.
    stand_command(acquire_command ask, std::optional<node_id> node) : ask_(std::move(ask)), node_(node) {}

    const acquire_command& ask() const noexcept { return ask_; }
    const resource_name& resource() const noexcept { return ask_.resource(); }
    std::optional<node_id> node() const noexcept { return node_; }

private:
    acquire_command ask_;
    std::optional<node_id> node_;
};

/// Confirm the offer to this place, whose client was connected a moment ago, if there is one.
class claim_command {
public:
    claim_command(domain::place place, acquire_command ask) : place_(std::move(place)), ask_(std::move(ask)) {}

    const domain::place& place() const noexcept { return place_; }
    const acquire_command& ask() const noexcept { return ask_; }
    const resource_name& resource() const noexcept { return place_.resource(); }

private:
    domain::place place_;
    acquire_command ask_;
};

/// The request at this place ends (time up, client gone, node drains): the place is kept for a while, for its order
/// only. An offer to it passes on. Without effect where another request has taken the place over.
class withdraw_command {
public:
    explicit withdraw_command(domain::place place) : place_(std::move(place)) {}

    const domain::place& place() const noexcept { return place_; }
    const resource_name& resource() const noexcept { return place_.resource(); }

private:
    domain::place place_;
};

/// Give the owner's place up. An offer to it passes on.
class leave_command {
public:
    leave_command(resource_name resource, owner_name owner)
        : resource_(std::move(resource)), owner_(std::move(owner)) {}

    const resource_name& resource() const noexcept { return resource_; }
    const owner_name& owner() const noexcept { return owner_; }

private:
    resource_name resource_;
    owner_name owner_;
};

/// Offer the lock to the first living waiter if its lease has ended.
class hand_over_command {
public:
    /// `at` is the node that asks, if the clients of its waiters are connected: should the first one stand there, then
    /// it is granted the lock at once, and needs no offer.
    explicit hand_over_command(resource_name resource, std::optional<node_id> at = std::nullopt)
        : resource_(std::move(resource)), at_(at) {}

    const resource_name& resource() const noexcept { return resource_; }
    std::optional<node_id> at() const noexcept { return at_; }

private:
    resource_name resource_;
    std::optional<node_id> at_;
};

/// End a lease that somebody may wait for, and offer the lock to the first living waiter.
class queue_release_command {
public:
    /// Released at the holder's wish, or `given_back`: its answer could not be delivered; then only under its token,
    /// and not if the grant has been answered again under its key since. `at` as of hand_over_command.
    queue_release_command(release_command release, bool given_back, std::optional<node_id> at = std::nullopt)
        : release_(std::move(release)), given_back_(given_back), at_(at) {}

    const release_command& release() const noexcept { return release_; }
    const resource_name& resource() const noexcept { return release_.resource(); }
    bool given_back() const noexcept { return given_back_; }
    std::optional<node_id> at() const noexcept { return at_; }

private:
    release_command release_;
    bool given_back_;
    std::optional<node_id> at_;
};

}  // namespace holdfast::domain

#endif
