#ifndef HOLDFAST_STORE_MEMORY_STORE_HPP
#define HOLDFAST_STORE_MEMORY_STORE_HPP

#include "holdfast/store/lease_store.hpp"

#include <functional>
#include <map>

namespace holdfast::store {

/// The leases of one process, in memory, for unit tests: the rules of the contract without a database. Passes the same
/// conformance suite as the PostgreSQL store. I/O thread only; every call completes at once.
class memory_store final : public lease_store {
public:
    using clock = std::function<domain::timestamp()>;

    /// `now` plays the part of the database's clock.
    explicit memory_store(clock now) : now_(std::move(now)) {}

    boost::asio::awaitable<domain::result<domain::acquire_outcome>> acquire(domain::acquire_command command,
                                                                            deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::renew_outcome>> renew(domain::renew_command command,
                                                                        deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::release_result>> release(domain::release_command command,
                                                                           deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::look_outcome>> look(domain::look_command command,
                                                                      deadline deadline) override;

private:
    struct lease {
        domain::owner_name owner;
        domain::timestamp acquired_at;
        domain::timestamp expires_at;
        std::int64_t fencing_token;
        std::optional<domain::idempotency_key> key;
    };

    lease* live_lease(const domain::resource_name& resource, domain::timestamp now);
    static domain::lock describe(const domain::resource_name& resource, const lease& lease, domain::timestamp now);

    clock now_;
    std::map<domain::resource_name, lease> leases_;
    std::int64_t last_token_ = 0;
};

}  // namespace holdfast::store

#endif
