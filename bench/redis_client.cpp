// The lock of Redis's documentation: SET NX PX with a token of one's own, and a script that deletes only that token.
#include "resp.hpp"
#include "rival_client.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <unistd.h>

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace holdfast::rivals {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr std::string_view delete_if_ours =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";

class redis_client final : public rival_client {
public:
    redis_client(const rival_load& load, std::size_t number)
        : plan_(load.plan),
          recorder_(load.recorder),
          names_(load.plan),
          server_(load.server),
          socket_(load.executor),
          owner_("client-" + std::to_string(::getpid()) + "-" + std::to_string(number) + "-") {}

    asio::awaitable<bool> open() override {
        close();
        began_at_ = clock::now();
        auto [fault] = co_await socket_.async_connect(server_, as_result);
        began_at_.reset();
        if (!fault) socket_.set_option(tcp::no_delay(true), fault);
        if (!fault) socket_.non_blocking(true, fault);
        if (fault) co_return recorder_.failed("connect: " + fault.message());
        command_ = "*3\r\n";
        append_argument(command_, "SCRIPT");
        append_argument(command_, "LOAD");
        append_argument(command_, delete_if_ours);
        const auto loaded = co_await ask("script");
        if (!loaded) co_return false;
        script_ = loaded->text;
        co_return true;
    }

    asio::awaitable<bool> do_pair(clock::time_point began) override {
        const std::string name = names_.next();
        const std::string token = owner_ + std::to_string(++tokens_);
        compose_set(name, token);
        const auto set = co_await ask("acquire");
        if (!set) co_return false;
        if (set->type == '_') {
            recorder_.answered("refuse", began, began);
            recorder_.refused();
            co_return true;
        }
        if (set->text != "OK") co_return recorder_.failed("acquire: neither granted nor refused");
        recorder_.answered("acquire", began, began);

        compose_delete(name, token);
        const clock::time_point sent = clock::now();
        const auto deleted = co_await ask("release");
        if (!deleted) co_return false;
        if (deleted->type != ':' || deleted->text != "1") co_return recorder_.failed("release: it was not ours");
        recorder_.answered("release", began, sent);
        recorder_.finished("pair", began);
        co_return true;
    }

    asio::awaitable<void> finish() override {
        close();
        co_return;
    }

    void close_if_stuck(clock::time_point moment) override {
        if (began_at_ && *began_at_ < moment) close();
    }

private:
    void compose_set(std::string_view name, std::string_view token) {
        command_ = "*6\r\n";
        append_argument(command_, "SET");
        append_argument(command_, name);
        append_argument(command_, token);
        append_argument(command_, "NX");
        append_argument(command_, "PX");
        append_argument(command_, std::to_string(plan_.ttl_seconds * 1'000));
    }

    void compose_delete(std::string_view name, std::string_view token) {
        command_ = "*5\r\n";
        append_argument(command_, "EVALSHA");
        append_argument(command_, script_);
        append_argument(command_, "1");
        append_argument(command_, name);
        append_argument(command_, token);
    }

    /// Sends command_. Its reply, valid until the next, or nothing after an error, which was recorded.
    asio::awaitable<std::optional<resp_reply>> ask(std::string_view what) {
        began_at_ = clock::now();
        error_code fault;
        std::size_t sent = socket_.write_some(asio::buffer(command_), fault);
        if (sent < command_.size() && (!fault || fault == asio::error::would_block)) {
            const auto [later_fault, rest] =
                co_await asio::async_write(socket_, asio::buffer(command_) + sent, as_result);
            fault = later_fault;
        }
        received_ = 0;
        std::optional<resp_reply> reply;
        while (!fault && !reply) {
            const auto room = asio::buffer(buffer_) + received_;
            const auto [read_fault, got] = co_await socket_.async_read_some(room, as_result);
            fault = read_fault;
            received_ += got;
            reply = parse_reply(std::string_view(buffer_.data(), received_));
            if (!fault && !reply && received_ == buffer_.size()) fault = asio::error::message_size;
        }
        began_at_.reset();
        if (fault) {
            recorder_.failed("transport: " + fault.message());
            co_return std::nullopt;
        }
        if (reply->type == '-' || reply->type == 0) {
            recorder_.failed(std::string(what) + ": " + std::string(reply->text.substr(0, 80)));
            co_return std::nullopt;
        }
        co_return reply;
    }

    void close() {
        error_code ignored;
        socket_.close(ignored);
    }

    const cli::load_plan& plan_;
    cli::load_recorder& recorder_;
    name_choice names_;
    tcp::endpoint server_;
    tcp::socket socket_;
    std::string owner_;
    std::uint64_t tokens_ = 0;
    std::string script_;  // its SHA-1, as Redis calls it
    std::string command_;
    std::array<char, 1'024> buffer_{};
    std::size_t received_ = 0;
    std::optional<clock::time_point> began_at_;
};

}  // namespace

std::unique_ptr<rival_client> make_redis_client(const rival_load& load, std::size_t number) {
    return std::make_unique<redis_client>(load, number);
}

}  // namespace holdfast::rivals
