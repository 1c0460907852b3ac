#ifndef HOLDFAST_PG_METER_HPP
#define HOLDFAST_PG_METER_HPP

// The port through which the PostgreSQL side counts what it does. How it is added up and shown is app/'s business.

#include "holdfast/pg/backend.hpp"
#include "holdfast/pg/error_class.hpp"

#include <chrono>
#include <cstddef>

namespace holdfast::pg {

/// Callable from any thread, cheap enough for every batch; nothing throws.
class meter {
public:
    virtual ~meter() = default;

    /// A backend has run `rows` commands of one kind. A command whose row was busy is met again on the slow lane.
    virtual void batch_run(store::command_kind kind, lane lane, std::size_t rows,
                           std::chrono::nanoseconds duration) noexcept = 0;
    /// So many commands were answered from the outcome of another, without a row of their own.
    virtual void followers_answered(std::size_t commands) noexcept = 0;
    /// So many leases went from a release to the acquire behind it in one statement.
    virtual void passed_on(std::size_t leases) noexcept = 0;
    /// So many commands were left for the slow lane, since somebody holds their rows.
    virtual void slow_lane_entered(std::size_t commands) noexcept = 0;
    /// A statement failed, or a session could not be opened.
    virtual void failed(failure_class why) noexcept = 0;
    /// A session that had been open before is open again.
    virtual void reconnected() noexcept = 0;
    /// The session that hears notifications was lost, and listens again.
    virtual void listens_again() noexcept = 0;
};

/// Counts nothing.
meter& no_meter() noexcept;

}  // namespace holdfast::pg

#endif
