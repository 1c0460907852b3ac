#ifndef HOLDFAST_DOMAIN_COMMANDS_HPP
#define HOLDFAST_DOMAIN_COMMANDS_HPP

// What a client asks of a store, validated. Classes with constructors, not aggregates: g++ 12 destroys aggregate
// temporaries inside a co_await expression twice.

#include "holdfast/domain/fencing_token.hpp"
#include "holdfast/domain/idempotency_key.hpp"
#include "holdfast/domain/owner_name.hpp"
#include "holdfast/domain/resource_name.hpp"
#include "holdfast/domain/ttl.hpp"

#include <optional>
#include <utility>

namespace holdfast::domain {

/// Become holder of `resource` if its lease has ended or is the owner's own.
class acquire_command {
public:
    acquire_command(resource_name resource, owner_name owner, domain::ttl ttl,
                    std::optional<idempotency_key> key = std::nullopt)
        : resource_(std::move(resource)), owner_(std::move(owner)), ttl_(ttl), key_(std::move(key)) {}

    const resource_name& resource() const noexcept { return resource_; }
    const owner_name& owner() const noexcept { return owner_; }
    domain::ttl ttl() const noexcept { return ttl_; }
    /// While the grant that this key made is live, the same owner and key get the same grant again.
    const std::optional<idempotency_key>& key() const noexcept { return key_; }

    /// Until somebody else is answered with the grant too, or renews it, it may be given back
    /// (queue_release_command::given_back). Not so unless asked for.
    void make_returnable() noexcept { is_returnable_ = true; }
    bool is_returnable() const noexcept { return is_returnable_; }

private:
    resource_name resource_;
    owner_name owner_;
    domain::ttl ttl_;
    std::optional<idempotency_key> key_;
    bool is_returnable_ = false;
};

/// Move the end of one's own lease to clock + TTL. With a token, only if it is the current one.
class renew_command {
public:
    renew_command(resource_name resource, owner_name owner, domain::ttl ttl,
                  std::optional<domain::fencing_token> token = std::nullopt)
        : resource_(std::move(resource)), owner_(std::move(owner)), ttl_(ttl), token_(token) {}

    const resource_name& resource() const noexcept { return resource_; }
    const owner_name& owner() const noexcept { return owner_; }
    domain::ttl ttl() const noexcept { return ttl_; }
    std::optional<domain::fencing_token> fencing_token() const noexcept { return token_; }

private:
    resource_name resource_;
    owner_name owner_;
    domain::ttl ttl_;
    std::optional<domain::fencing_token> token_;
};

/// End one's own lease now. With a token, only if it is the current one.
class release_command {
public:
    release_command(resource_name resource, owner_name owner, std::optional<domain::fencing_token> token = std::nullopt)
        : resource_(std::move(resource)), owner_(std::move(owner)), token_(token) {}

    const resource_name& resource() const noexcept { return resource_; }
    const owner_name& owner() const noexcept { return owner_; }
    std::optional<domain::fencing_token> fencing_token() const noexcept { return token_; }

private:
    resource_name resource_;
    owner_name owner_;
    std::optional<domain::fencing_token> token_;
};

/// See who holds `resource`. Changes nothing.
class look_command {
public:
    explicit look_command(resource_name resource) : resource_(std::move(resource)) {}

    const resource_name& resource() const noexcept { return resource_; }

private:
    resource_name resource_;
};

}  // namespace holdfast::domain

#endif
