#ifndef HOLDFAST_PG_THREADED_STORE_HPP
#define HOLDFAST_PG_THREADED_STORE_HPP

#include "holdfast/pg/connection_threads.hpp"
#include "holdfast/store/lease_store.hpp"

namespace holdfast::pg {

/// The store port on connection threads.
class threaded_store final : public store::lease_store {
public:
    /// `threads` must outlive the store.
    explicit threaded_store(connection_threads& threads) : threads_(threads) {}

    boost::asio::awaitable<domain::result<domain::acquire_outcome>> acquire(domain::acquire_command command,
                                                                            store::deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::renew_outcome>> renew(domain::renew_command command,
                                                                        store::deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::release_result>> release(domain::release_command command,
                                                                           store::deadline deadline) override;
    boost::asio::awaitable<domain::result<domain::look_outcome>> look(domain::look_command command,
                                                                      store::deadline deadline) override;

private:
    connection_threads& threads_;
};

}  // namespace holdfast::pg

#endif
