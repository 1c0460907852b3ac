#ifndef HOLDFAST_PG_DATABASE_HPP
#define HOLDFAST_PG_DATABASE_HPP

#include "holdfast/domain/journal.hpp"
#include "holdfast/pg/database_settings.hpp"
#include "holdfast/pg/meter.hpp"
#include "holdfast/store/lease_store.hpp"
#include "holdfast/store/wait_queue.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <functional>
#include <memory>
#include <string>

namespace holdfast::pg {

/// The PostgreSQL side of a node: connection threads, the store and the waiting lines on them, the monitor that probes
/// writability and sweeps, the heartbeat that says that this node lives, the listener that hears other nodes. Created,
/// used and destroyed on the I/O thread.
class database {
public:
    /// Called on the I/O thread, once, when this node must not run against this database (schema newer than this binary
    /// knows, isolation level not READ COMMITTED, migration refused …) with a line for the operator.
    using refused_handler = std::function<void(std::string reason)>;

    /// Starts nothing yet. `executor` is the I/O thread's; `journal` and `meter` must outlive the database.
    database(boost::asio::any_io_executor executor, database_settings settings, domain::journal& journal,
             meter& meter = no_meter());
    /// Call stop() first; the destructor joins whatever still runs.
    ~database();

    /// Starts the threads and returns at once. They connect, migrate (if so set) and reconnect for as long as needed,
    /// outside any request; commands are refused with `unavailable` while no connection is up.
    void start(refused_handler on_refused);

    store::lease_store& store() noexcept;
    /// The waiting lines, and what is heard about them. listen() belongs before start().
    store::wait_queue& queue() noexcept;

    /// True when a probe within the last moments found the session writable, a connection for commands is up, and the
    /// others have been told of this node, so that requests can wait here. A heartbeat that is lost later makes waiting
    /// `unavailable` and nothing else.
    bool ready() const noexcept;

    /// How many commands wait for a connection thread.
    std::size_t waiting() const;

    /// Lets sent commands finish within `limit`, fails the queued ones with `unavailable`, closes the connections,
    /// joins the threads.
    boost::asio::awaitable<void> stop(std::chrono::milliseconds limit);

private:
    class implementation;
    std::unique_ptr<implementation> implementation_;
};

}  // namespace holdfast::pg

#endif
