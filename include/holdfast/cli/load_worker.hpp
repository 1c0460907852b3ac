#ifndef HOLDFAST_CLI_LOAD_WORKER_HPP
#define HOLDFAST_CLI_LOAD_WORKER_HPP

#include "holdfast/cli/load_plan.hpp"
#include "holdfast/cli/load_recorder.hpp"
#include "holdfast/client/http_connection.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>

namespace holdfast::cli {

/// Where a server was found to answer, or else where it should be.
struct found_server {
    std::string authority;
    boost::asio::ip::tcp::endpoint endpoint;
};

/// One connection of a load test and the rounds it can do; what they bring goes to the recorder. One round at a time;
/// its strings are reused from round to round. What it returns is false after an error, which was recorded.
class load_worker {
public:
    using clock = std::chrono::steady_clock;

    /// `plan` and `recorder` must outlive it. `owner` must be nobody else's and need no escape in JSON.
    load_worker(boost::asio::any_io_executor executor, const load_plan& plan, load_recorder& recorder,
                const found_server& server, std::string owner, std::uint64_t seed);

    /// Connects, unless it is connected.
    boost::asio::awaitable<bool> connect();

    /// Drops a connection that the server has closed while nothing was asked of it.
    void notice_close();

    /// Does what the plan says once. `due` is when that should have begun, now or before.
    boost::asio::awaitable<bool> do_round(clock::time_point due);

    /// As http_connection says.
    void close_if_stuck(clock::time_point moment) { connection_.close_if_stuck(moment); }
    void close() noexcept { connection_.close(); }

    /// For whoever lets it work: to pause until then, or until cancelled.
    boost::asio::steady_timer pause;

private:
    enum class acquired { granted, refused, failed };

    boost::asio::awaitable<bool> do_pair();
    boost::asio::awaitable<bool> do_mixed();
    boost::asio::awaitable<bool> do_health();
    boost::asio::awaitable<bool> look_at_nothing();
    boost::asio::awaitable<acquired> acquire();
    boost::asio::awaitable<bool> renew();
    boost::asio::awaitable<bool> look();
    boost::asio::awaitable<bool> be_refused();
    boost::asio::awaitable<bool> release();

    boost::asio::awaitable<std::optional<client::answer>> ask(std::string_view method, std::string_view target,
                                                              std::string_view body);
    void choose_resource(std::string_view prefix);
    bool names_our_lock(std::string_view body) const;

    const load_plan& plan_;
    load_recorder& recorder_;
    client::http_connection connection_;
    std::minstd_rand random_;
    clock::time_point due_;           // of the round
    std::int64_t fencing_token_ = 0;  // of the last grant
    std::string quoted_owner_;        // as it stands in JSON
    std::string quoted_resource_;
    std::string target_;  // the lock's path
    std::string renew_target_;
    std::string body_;
    const std::string acquire_body_;
    const std::string rival_body_;  // an acquire by somebody else
};

}  // namespace holdfast::cli

#endif
