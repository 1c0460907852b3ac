#include "holdfast/service/lease_service.hpp"

#include <utility>

namespace holdfast::service {

using namespace domain;

boost::asio::awaitable<result<acquire_outcome>> lease_service::acquire(acquire_command command) {
    return store_.acquire(std::move(command), deadline_from_now());
}

boost::asio::awaitable<result<renew_outcome>> lease_service::renew(renew_command command) {
    return store_.renew(std::move(command), deadline_from_now());
}

boost::asio::awaitable<result<release_result>> lease_service::release(release_command command) {
    return store_.release(std::move(command), deadline_from_now());
}

boost::asio::awaitable<result<look_outcome>> lease_service::look(look_command command) {
    return store_.look(std::move(command), deadline_from_now());
}

}  // namespace holdfast::service
