#include "rival_run.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <exception>
#include <utility>
#include <vector>

namespace holdfast::rivals {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio::ip::tcp;
using clock = std::chrono::steady_clock;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr auto pause_after_error = 100ms;
constexpr auto watch_interval = 100ms;

std::optional<tcp::endpoint> endpoint_of(asio::io_context& io, const client::server_url& url) {
    tcp::resolver resolver(io);
    boost::system::error_code fault;
    for (const auto& entry : resolver.resolve(url.host, std::to_string(url.port), fault)) {
        tcp::socket probe(io);
        probe.connect(entry.endpoint(), fault);
        if (!fault) return entry.endpoint();
    }
    return std::nullopt;
}

class rival_run {
public:
    rival_run(const cli::load_plan& plan, const client_maker& make, const tcp::endpoint& server) : plan_(plan) {
        const rival_load load{io_.get_executor(), plan, recorder_, server, history_};
        for (std::size_t n = 0; n < plan.connections; ++n)
            clients_.push_back(make(load, n));
    }

    cli::load_report run() {
        spawn(conduct());
        asio::co_spawn(io_, watch(), &rethrow);
        io_.run();
        recorder_.report().measured = plan_.length;
        return std::move(recorder_.report());
    }

private:
    static void rethrow(std::exception_ptr fault) {
        if (fault) std::rethrow_exception(fault);
    }

    void spawn(asio::awaitable<void> task) {
        ++running_;
        asio::co_spawn(io_, std::move(task), [this](std::exception_ptr fault) {
            rethrow(fault);
            if (--running_ == 0) watch_.cancel();
        });
    }

    /// The load begins when all have opened: what a rival needs once a connection is no part of it.
    asio::awaitable<void> conduct() {
        for (const auto& client : clients_)
            co_await client->open();
        const clock::time_point from = clock::now() + plan_.warmup;
        recorder_.measure(from, from + plan_.length);
        for (const auto& client : clients_)
            spawn(work(*client));
    }

    asio::awaitable<void> work(rival_client& client) {
        asio::steady_timer pause(io_);
        bool is_well = true;
        while (clock::now() < recorder_.until()) {
            if (is_well) {
                is_well = co_await client.do_pair(clock::now());
                continue;
            }
            pause.expires_after(pause_after_error);
            co_await pause.async_wait(as_result);
            is_well = co_await client.open();
        }
        co_await client.finish();
    }

    asio::awaitable<void> watch() {
        while (running_ > 0) {
            watch_.expires_after(watch_interval);
            co_await watch_.async_wait(as_result);
            for (const auto& client : clients_)
                client->close_if_stuck(clock::now() - plan_.answer_limit);
        }
    }

    const cli::load_plan& plan_;
    asio::io_context io_{1};
    asio::steady_timer watch_{io_};
    cli::load_recorder recorder_;
    cli::grant_history history_;
    std::vector<std::unique_ptr<rival_client>> clients_;
    std::size_t running_ = 0;
};

}  // namespace

std::optional<cli::load_report> run_rival(const cli::load_plan& plan, const client_maker& make) {
    asio::io_context io;
    const std::optional<tcp::endpoint> server = endpoint_of(io, plan.servers.front());
    if (!server) return std::nullopt;
    rival_run run(plan, make, *server);
    return run.run();
}

}  // namespace holdfast::rivals
