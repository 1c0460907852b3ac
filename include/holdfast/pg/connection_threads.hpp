#ifndef HOLDFAST_PG_CONNECTION_THREADS_HPP
#define HOLDFAST_PG_CONNECTION_THREADS_HPP

#include "holdfast/domain/journal.hpp"
#include "holdfast/pg/backend.hpp"
#include "holdfast/pg/meter.hpp"
#include "holdfast/pg/operation.hpp"
#include "holdfast/pg/socket_watch.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>

#include <functional>
#include <memory>

namespace holdfast::pg {

struct thread_settings {
    std::size_t fast_threads = 4;
    std::size_t slow_threads = 2;
    std::size_t queue_max = 10'000;
    std::size_t batch_rows_max = 128;
    std::chrono::milliseconds lock_timeout{1'000};
    std::chrono::milliseconds reconnect_backoff_max{1'000};
};

/// Threads that each own one database session and carry out commands, and the bridge to them. While all threads are
/// busy, commands pile up and form the next batch; an idle thread takes what there is at once. All members are for the
/// I/O thread, on which every completion runs.
class connection_threads {
public:
    /// Makes a thread's backend, on that thread. The watch outlives the backend.
    using backend_factory = std::function<std::unique_ptr<backend>(socket_watch& watch)>;

    /// `journal` and `meter` must outlive the threads.
    connection_threads(boost::asio::any_io_executor executor, const thread_settings& settings, backend_factory factory,
                       domain::journal& journal, meter& meter = no_meter());
    /// Without a stop() before: stops with no time left, and joins.
    ~connection_threads();

    /// Starts the threads; they connect by themselves. Until one has, commands are `unavailable`.
    void start();

    /// Carries out `command`. Completes, never inside this call and without a detour over the handler's own executor,
    /// with its answer, at the latest shortly after `until`; with `operation_aborted`
    /// on total or terminal cancellation. Refused at once: `overloaded` when the queue is full, `unavailable` when no
    /// connection is up. Past the deadline: `overloaded` if it was never sent, else `outcome_unknown` (a look:
    /// `unavailable`), and the stuck socket is shut down.
    template <boost::asio::completion_token_for<void(boost::system::error_code, answer)> CompletionToken>
    auto async_run(command command, store::deadline until, CompletionToken&& token) {
        return boost::asio::async_initiate<CompletionToken, void(boost::system::error_code, answer)>(
            [this](auto handler, operation_ptr operation) {
                submit(std::move(operation), answer_handler(std::move(handler)));
            },
            token, std::make_shared<operation>(std::move(command), until));
    }

    /// Whether a session for ordinary commands is up.
    bool connected() const noexcept;
    /// How many commands wait for a thread.
    std::size_t waiting() const;

    /// Fails what waits with `unavailable`, gives what runs up to `limit`, then shuts its sockets down; joins the
    /// threads.
    boost::asio::awaitable<void> stop(std::chrono::milliseconds limit);

private:
    class core;

    void submit(operation_ptr operation, answer_handler handler);

    std::shared_ptr<core> core_;
};

}  // namespace holdfast::pg

#endif
