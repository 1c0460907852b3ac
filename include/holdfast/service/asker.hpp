#ifndef HOLDFAST_SERVICE_ASKER_HPP
#define HOLDFAST_SERVICE_ASKER_HPP

#include <boost/asio/awaitable.hpp>

namespace holdfast::service {

/// Who asks for a lock and is ready to wait for it.
class asker {
public:
    /// The request is about to stand in line, which it does once at most. From now on total cancellation of the
    /// awaiting coroutine says that the client is gone.
    virtual boost::asio::awaitable<void> stands_in_line() = 0;

protected:
    ~asker() = default;
};

}  // namespace holdfast::service

#endif
