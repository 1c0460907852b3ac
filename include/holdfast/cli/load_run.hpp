#ifndef HOLDFAST_CLI_LOAD_RUN_HPP
#define HOLDFAST_CLI_LOAD_RUN_HPP

#include "holdfast/cli/load_plan.hpp"
#include "holdfast/cli/load_recorder.hpp"
#include "holdfast/cli/load_worker.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

/// What every load does around its own: finds the servers, beats for those who give up requests without an answer,
/// obeys signals, and ends when its last coroutine has. One I/O loop on the calling thread.
class load_run {
public:
    using clock = std::chrono::steady_clock;

    virtual ~load_run() = default;
    load_run(const load_run&) = delete;
    load_run& operator=(const load_run&) = delete;

    /// Nothing when no server answered at all. Once only.
    std::optional<load_report> run();

protected:
    /// `plan` must outlive it.
    explicit load_run(const load_plan& plan);

    /// Puts the load on servers(), until rest_until_end() has returned and it has ended what it began.
    virtual boost::asio::awaitable<void> apply_load() = 0;
    /// Ends requests that began before `limit`; called ten times a second.
    virtual void close_stuck(clock::time_point limit) = 0;
    /// A signal came: whoever rests must not any more.
    virtual void wake_all() = 0;

    /// Lets a coroutine run beside the others; the run ends with the last of them.
    void spawn(boost::asio::awaitable<void> task);
    /// Until the measured time is over, or a signal comes; from then on is_stopping() is true. Sets `measured` of the
    /// report.
    boost::asio::awaitable<void> rest_until_end();
    /// A coroutine's pause that nobody cancels.
    boost::asio::awaitable<void> rest(clock::duration length);

    bool is_stopping() const noexcept { return is_stopping_; }
    std::size_t running() const noexcept { return running_; }  ///< Coroutines of spawn().
    const load_plan& plan() const noexcept { return plan_; }
    boost::asio::any_io_executor executor() { return io_.get_executor(); }
    load_recorder& recorder() noexcept { return recorder_; }
    const std::vector<found_server>& servers() const noexcept { return servers_; }

    /// A text that is this run's own, for names; needs no escape anywhere.
    static std::string fresh_name();

private:
    boost::asio::awaitable<void> conduct();
    boost::asio::awaitable<void> watch();
    boost::asio::awaitable<void> obey_signals();
    boost::asio::awaitable<bool> find_servers();
    boost::asio::awaitable<bool> find_server(const client::server_url& url);

    const load_plan& plan_;
    boost::asio::io_context io_{1};
    boost::asio::signal_set signals_;
    boost::asio::steady_timer end_;             // fires when the load is to stop
    boost::asio::steady_timer watch_;           // beats for close_stuck
    client::http_connection* probe_ = nullptr;  // of find_server
    std::vector<found_server> servers_;
    std::size_t running_ = 0;  // coroutines beside watch() and obey_signals()
    bool is_stopping_ = false;
    bool is_any_reachable_ = false;
    load_recorder recorder_;
};

}  // namespace holdfast::cli

#endif
