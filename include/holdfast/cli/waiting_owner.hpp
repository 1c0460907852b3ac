#ifndef HOLDFAST_CLI_WAITING_OWNER_HPP
#define HOLDFAST_CLI_WAITING_OWNER_HPP

#include "holdfast/cli/grant_history.hpp"
#include "holdfast/cli/load_plan.hpp"
#include "holdfast/cli/load_recorder.hpp"
#include "holdfast/cli/load_worker.hpp"
#include "holdfast/client/http_connection.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::cli {

/// A resource that owners wait for.
struct contended_resource {
    explicit contended_resource(std::string name) : name(std::move(name)) {}

    std::string name;  ///< Needs no escape, in a URL or in JSON.
    grant_history history;
};

/// One connection whose owner stands in line for one resource, again and again. What that brings goes to the recorder
/// and to the resource's history. What it returns is false after an error, which was recorded.
class waiting_owner {
public:
    using clock = std::chrono::steady_clock;

    /// How an acquire ended.
    enum class turn { granted, time_up, failed };

    /// `plan`, `recorder` and `resource` must outlive it. `server` is number `server_number`. `name` must be nobody
    /// else's and need no escape; `number` as well.
    waiting_owner(boost::asio::any_io_executor executor, const load_plan& plan, load_recorder& recorder,
                  const found_server& server, std::size_t server_number, contended_resource& resource, std::string name,
                  std::size_t number);

    /// Connects, unless it is connected.
    boost::asio::awaitable<bool> connect();

    /// Asks and waits until it is answered, once.
    boost::asio::awaitable<turn> stand_in_line();
    /// Releases what it was granted last.
    boost::asio::awaitable<bool> release();
    /// Renews it.
    boost::asio::awaitable<bool> renew();
    /// From now on somebody else who has nothing; `number` must be fresh.
    void become(std::size_t number);

    bool is_standing() const noexcept { return is_standing_; }
    /// Closes the connection; what is in progress ends, which is no error.
    void leave() noexcept;

    /// As http_connection says; who stands in line has its wait on top.
    void close_if_stuck(clock::time_point moment);

    /// For whoever lets it work: to pause until then, or until cancelled.
    boost::asio::steady_timer pause;

private:
    boost::asio::awaitable<std::optional<client::answer>> ask(std::string_view method, std::string_view target,
                                                              std::string_view body);
    turn read_answer(const client::answer& answered, clock::time_point asked_at);
    turn read_grant(const client::answer& answered, clock::time_point asked_at, clock::time_point received_at);
    bool fail(std::string label);

    const load_plan& plan_;
    load_recorder& recorder_;
    client::http_connection connection_;
    std::size_t server_number_;
    contended_resource& resource_;
    const std::string base_name_;
    std::size_t number_;
    const std::string target_;
    const std::string quoted_resource_;
    std::string quoted_owner_;
    std::string acquire_body_;
    std::string body_;
    std::int64_t fencing_token_ = 0;
    bool is_standing_ = false;
    bool is_leaving_ = false;
};

}  // namespace holdfast::cli

#endif
