#include "holdfast/pg/threaded_store.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace holdfast::pg {

using namespace domain;

namespace {

template <class Outcome, class Command>
boost::asio::awaitable<result<Outcome>> carry_out(connection_threads& threads, Command what, store::deadline deadline) {
    command whole(std::move(what));
    answer reply = co_await threads.async_run(std::move(whole), deadline, boost::asio::use_awaitable);
    if (!reply) co_return reply.error();
    co_return std::get<Outcome>(std::move(*reply));
}

}  // namespace

boost::asio::awaitable<result<acquire_outcome>> threaded_store::acquire(acquire_command command,
                                                                        store::deadline deadline) {
    return carry_out<acquire_outcome>(threads_, std::move(command), deadline);
}

boost::asio::awaitable<result<renew_outcome>> threaded_store::renew(renew_command command, store::deadline deadline) {
    return carry_out<renew_outcome>(threads_, std::move(command), deadline);
}

boost::asio::awaitable<result<release_result>> threaded_store::release(release_command command,
                                                                       store::deadline deadline) {
    return carry_out<release_result>(threads_, std::move(command), deadline);
}

boost::asio::awaitable<result<look_outcome>> threaded_store::look(look_command command, store::deadline deadline) {
    return carry_out<look_outcome>(threads_, std::move(command), deadline);
}

}  // namespace holdfast::pg
