// etcd 3.4 through its JSON gateway: https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/
#include "holdfast/client/http_connection.hpp"

#include "rival_client.hpp"

#include <optional>
#include <string_view>
#include <utility>

namespace holdfast::rivals {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// As the gateway wants bytes within JSON (RFC 4648).
std::string base64(std::string_view bytes) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        const std::string_view group = bytes.substr(at, 3);
        unsigned bits = 0;
        for (std::size_t n = 0; n < 3; ++n)
            bits = bits << 8 | (n < group.size() ? static_cast<unsigned char>(group[n]) : 0);
        for (std::size_t n = 0; n < 4; ++n)
            text += n <= group.size() ? digits[bits >> (18 - 6 * n) & 63] : '=';
    }
    return text;
}

/// The text of a string member, which holds no escape: a key in base64 or a number.
std::string_view text_member(std::string_view body, std::string_view name) {
    const std::string mark = "\"" + std::string(name) + "\":\"";
    const std::size_t at = body.find(mark);
    if (at == std::string_view::npos) return {};
    const std::string_view rest = body.substr(at + mark.size());
    return rest.substr(0, rest.find('"'));
}

/// One connection with a lease of its own, under which it locks.
class etcd_client final : public rival_client {
public:
    etcd_client(const rival_load& load, std::size_t number)
        : plan_(load.plan),
          recorder_(load.recorder),
          history_(load.history),
          number_(number),
          names_(load.plan),
          connection_(load.executor, load.server, load.plan.servers.front().authority) {}

    asio::awaitable<bool> open() override {
        if (!connection_.is_open()) {
            const error_code fault = co_await connection_.open();
            if (fault) co_return recorder_.failed("connect: " + fault.message());
        }
        if (!lease_.empty()) co_return true;
        // Long enough for the run, which needs no keep-alive then, as a session of etcd's own clients would send.
        const auto ttl = (plan_.warmup + plan_.length + plan_.answer_limit).count() + 60;
        body_ = "{\"TTL\":" + std::to_string(ttl) + "}";
        const auto answered = co_await ask("lease", "/v3/lease/grant");
        if (!answered) co_return false;
        lease_ = text_member(*answered, "ID");
        if (lease_.empty()) co_return recorder_.failed("lease: the answer names none");
        co_return true;
    }

    asio::awaitable<bool> do_pair(clock::time_point began) override {
        body_.assign("{\"name\":\"").append(base64(names_.next())).append("\",\"lease\":\"");
        body_.append(lease_).append("\"}");
        history_.asked();
        const auto locked = co_await ask("lock", "/v3/lock/lock");  // answered when granted
        history_.answered();
        if (!locked) co_return false;
        const std::string_view key = text_member(*locked, "key");
        if (key.empty()) co_return recorder_.failed("lock: the answer has no key");
        const std::int64_t grant = plan_.kind == cli::load_kind::wait ? note_grant(began) : 0;
        if (grant == 0) recorder_.answered("acquire", began, began);

        body_.assign("{\"key\":\"").append(key).append("\"}");
        const clock::time_point sent = clock::now();
        history_.releasing(grant, sent, 0);
        const auto unlocked = co_await ask("unlock", "/v3/lock/unlock");
        if (!unlocked) history_.release_failed(grant);
        if (!unlocked) co_return false;
        recorder_.answered("release", began, sent);
        recorder_.finished("pair", began);
        co_return true;
    }

    asio::awaitable<void> finish() override {
        if (lease_.empty() || !connection_.is_open()) co_return;
        body_.assign("{\"ID\":\"").append(lease_).append("\"}");
        co_await ask("revoke", "/v3/lease/revoke");
        connection_.close();
    }

    void close_if_stuck(clock::time_point moment) override { connection_.close_if_stuck(moment); }

private:
    /// For the history of the one lock. etcd stamps no leases, so there is nothing to judge but who came after whom:
    /// grants are numbered as they arrive.
    std::int64_t note_grant(clock::time_point began) {
        cli::seen_grant grant;
        grant.fencing_token = history_.last_token() + 1;
        grant.owner = number_;
        grant.asked_at = began;
        grant.received_at = grant.trusted_until = clock::now();
        recorder_.granted(grant, history_.granted(grant));
        return grant.fencing_token;
    }

    /// Posts body_. The text of a 200, or nothing after an error, which was recorded.
    asio::awaitable<std::optional<std::string_view>> ask(std::string_view what, std::string_view target) {
        const auto answered = co_await connection_.exchange("POST", target, body_);
        if (answered && answered->status == 200) co_return answered->body;
        std::string label(what);
        label.append(": ").append(answered ? std::to_string(answered->status) : answered.error().message());
        recorder_.failed(std::move(label));
        co_return std::nullopt;
    }

    const cli::load_plan& plan_;
    cli::load_recorder& recorder_;
    cli::grant_history& history_;
    std::size_t number_;
    name_choice names_;
    client::http_connection connection_;
    std::string lease_;
    std::string body_;
};

}  // namespace

std::unique_ptr<rival_client> make_etcd_client(const rival_load& load, std::size_t number) {
    return std::make_unique<etcd_client>(load, number);
}

}  // namespace holdfast::rivals
