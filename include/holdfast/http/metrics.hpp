#ifndef HOLDFAST_HTTP_METRICS_HPP
#define HOLDFAST_HTTP_METRICS_HPP

// The port through which the HTTP layer counts what it answers, and through which it is given the page on which
// everything that is counted can be read. How numbers are added up and written is app/'s business.

#include "holdfast/http/router.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::http {

/// Used on the I/O thread.
class metrics {
public:
    virtual ~metrics() = default;

    /// An answer is about to be written, so long after the first byte of its request. `asked` is nothing when no route
    /// was meant: an unknown path or method, OPTIONS, a request that cannot be read, a connection too many.
    virtual void answered(std::optional<operation> asked, int status, std::chrono::nanoseconds duration) noexcept = 0;
    /// The same for an acquire that asked to wait, whose duration says more about others' leases than about this node.
    virtual void answered_after_wait(int status, std::chrono::nanoseconds duration) noexcept = 0;
    /// A connection that is served, not one too many.
    virtual void connection_opened() noexcept = 0;
    virtual void connection_closed() noexcept = 0;

    /// All numbers, as they are now, in Prometheus's text format 0.0.4. Never asks the database.
    virtual std::string page() = 0;
};

inline constexpr std::string_view metrics_type = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace holdfast::http

#endif
