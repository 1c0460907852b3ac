#ifndef HOLDFAST_BENCH_RIVAL_CLIENT_HPP
#define HOLDFAST_BENCH_RIVAL_CLIENT_HPP

#include "holdfast/cli/grant_history.hpp"
#include "holdfast/cli/load_plan.hpp"
#include "holdfast/cli/load_recorder.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <random>
#include <string>

namespace holdfast::rivals {

/// What the clients of one run share. All of it outlives them.
struct rival_load {
    boost::asio::any_io_executor executor;
    const cli::load_plan& plan;
    cli::load_recorder& recorder;
    boost::asio::ip::tcp::endpoint server;
    /// Of the one lock that all wait for (load_kind::wait), which is measured as Holdfast's is.
    cli::grant_history& history;
};

/// One connection to a rival of Holdfast. Everything on the one thread of its executor; what its rounds bring goes to
/// the recorder. False is an error, which was recorded.
class rival_client {
public:
    using clock = std::chrono::steady_clock;

    virtual ~rival_client() = default;

    /// Connects, and does what the rival needs once a connection. Again after an error.
    virtual boost::asio::awaitable<bool> open() = 0;
    /// Acquires a lock and releases it. `began` is now.
    virtual boost::asio::awaitable<bool> do_pair(clock::time_point began) = 0;
    /// Gives back what open() took, after the last pair.
    virtual boost::asio::awaitable<void> finish() = 0;
    /// Ends what is in progress if it began before `moment`.
    virtual void close_if_stuck(clock::time_point moment) = 0;
};

/// Chooses the names of a client's locks: any of many, or always the one that all want.
class name_choice {
public:
    explicit name_choice(const cli::load_plan& plan)
        : hot_(plan.kind == cli::load_kind::hot || plan.kind == cli::load_kind::wait ? plan.hot_resource : ""),
          choice_(0, plan.resources - 1),
          random_(std::random_device()()) {}

    std::string next() { return hot_.empty() ? "bench:" + std::to_string(choice_(random_)) : hot_; }

private:
    std::string hot_;
    std::uniform_int_distribution<std::int64_t> choice_;
    std::minstd_rand random_;
};

std::unique_ptr<rival_client> make_redis_client(const rival_load& load, std::size_t number);
std::unique_ptr<rival_client> make_etcd_client(const rival_load& load, std::size_t number);

}  // namespace holdfast::rivals

#endif
