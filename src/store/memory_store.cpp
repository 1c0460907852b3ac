#include "holdfast/store/memory_store.hpp"

#include <boost/asio/awaitable.hpp>

namespace holdfast::store {

using namespace domain;

memory_store::lease* memory_store::live_lease(const resource_name& resource, timestamp now) {
    const auto found = leases_.find(resource);
    return found != leases_.end() && found->second.expires_at > now ? &found->second : nullptr;
}

lock memory_store::describe(const resource_name& resource, const lease& lease, timestamp now) {
    return lock(resource, lease.owner, lease.acquired_at, lease.expires_at,
                std::chrono::floor<std::chrono::milliseconds>(lease.expires_at - now),
                *fencing_token::parse(lease.fencing_token));
}

boost::asio::awaitable<result<acquire_outcome>> memory_store::acquire(acquire_command command, deadline) {
    const timestamp now = now_();
    if (const lease* held = live_lease(command.resource(), now)) {
        if (held->owner != command.owner())
            co_return acquire_outcome::held(std::chrono::ceil<std::chrono::milliseconds>(held->expires_at - now));
        if (command.key() && held->key == command.key())
            co_return acquire_outcome::granted(describe(command.resource(), *held, now));
    }
    lease grant{command.owner(), now, now + command.ttl().length(), ++last_token_, command.key()};
    const auto [entry, inserted] = leases_.insert_or_assign(command.resource(), std::move(grant));
    co_return acquire_outcome::granted(describe(command.resource(), entry->second, now));
}

boost::asio::awaitable<result<renew_outcome>> memory_store::renew(renew_command command, deadline) {
    const timestamp now = now_();
    lease* held = live_lease(command.resource(), now);
    if (!held) co_return renew_outcome::not_found();
    if (held->owner != command.owner()) co_return renew_outcome::forbidden();
    if (command.fencing_token() && command.fencing_token()->number() != held->fencing_token)
        co_return renew_outcome::forbidden();
    held->expires_at = now + command.ttl().length();
    co_return renew_outcome::renewed(describe(command.resource(), *held, now));
}

boost::asio::awaitable<result<release_result>> memory_store::release(release_command command, deadline) {
    const timestamp now = now_();
    lease* held = live_lease(command.resource(), now);
    if (!held) co_return release_result::not_found;
    if (held->owner != command.owner()) co_return release_result::forbidden;
    if (command.fencing_token() && command.fencing_token()->number() != held->fencing_token)
        co_return release_result::forbidden;
    held->expires_at = now;
    co_return release_result::released;
}

boost::asio::awaitable<result<look_outcome>> memory_store::look(look_command command, deadline) {
    const timestamp now = now_();
    const lease* held = live_lease(command.resource(), now);
    if (!held) co_return look_outcome::not_found();
    co_return look_outcome::found(describe(command.resource(), *held, now));
}

}  // namespace holdfast::store
