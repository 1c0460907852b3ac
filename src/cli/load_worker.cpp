#include "holdfast/cli/load_worker.hpp"

#include "holdfast/cli/answer_text.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/string.hpp>
#include <boost/url/encode.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>

#include <utility>

namespace holdfast::cli {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using client::answer;

constexpr std::string_view token_mark = "\"fencing_token\":";

std::string acquire_body(std::string_view owner, std::int64_t ttl_seconds) {
    std::string body = "{\"owner\":\"";
    body.append(owner).append("\",\"ttl_seconds\":").append(std::to_string(ttl_seconds)).append("}");
    return body;
}

}  // namespace

load_worker::load_worker(asio::any_io_executor executor, const load_plan& plan, load_recorder& recorder,
                         const found_server& server, std::string owner, std::uint64_t seed)
    : pause(executor),
      plan_(plan),
      recorder_(recorder),
      connection_(executor, server.endpoint, server.authority),
      random_(static_cast<std::minstd_rand::result_type>(seed)),
      quoted_owner_('"' + owner + '"'),
      acquire_body_(acquire_body(owner, plan.ttl_seconds)),
      rival_body_(acquire_body(owner + "-rival", plan.ttl_seconds)) {
    if (plan.kind != load_kind::hot) return;
    quoted_resource_ = boost::json::serialize(boost::json::string(plan.hot_resource));
    target_ = "/locks/" + boost::urls::encode(plan.hot_resource, boost::urls::unreserved_chars);
}

asio::awaitable<bool> load_worker::connect() {
    if (connection_.is_open()) co_return true;
    const error_code fault = co_await connection_.open();
    if (fault) co_return recorder_.failed("connect: " + fault.message());
    co_return true;
}

void load_worker::notice_close() {
    if (connection_.is_open() && connection_.was_closed_by_server()) connection_.close();
}

asio::awaitable<bool> load_worker::do_round(clock::time_point due) {
    due_ = due;
    switch (plan_.kind) {
        case load_kind::pairs:
            choose_resource("bench:");
            return do_pair();
        case load_kind::mixed:
            choose_resource("bench:");
            return do_mixed();
        case load_kind::hot:
            return do_pair();
        case load_kind::look:
            choose_resource("bench-absent:");
            return look_at_nothing();
        case load_kind::health:
            return do_health();
        case load_kind::wait:
            break;  // is a waiting_owner's
    }
    return do_health();
}

// ---- rounds ----

asio::awaitable<bool> load_worker::do_pair() {
    const acquired outcome = co_await acquire();
    if (outcome != acquired::granted) co_return outcome == acquired::refused;
    const bool is_released = co_await release();
    if (is_released) recorder_.finished("pair", due_);
    co_return is_released;
}

asio::awaitable<bool> load_worker::do_mixed() {
    const acquired outcome = co_await acquire();
    if (outcome != acquired::granted) co_return outcome == acquired::refused;
    bool is_well = co_await renew();
    if (is_well) is_well = co_await look();
    if (is_well) is_well = co_await be_refused();
    if (is_well) is_well = co_await release();
    if (is_well) recorder_.finished("round", due_);
    co_return is_well;
}

asio::awaitable<bool> load_worker::look_at_nothing() {
    const auto answered = co_await ask("GET", target_, {});
    if (!answered) co_return false;
    if (answered->status != 404 || problem_name(answered->body) != "not-found")
        co_return recorder_.failed(label_of(*answered));
    recorder_.answered("look", due_, due_);
    co_return true;
}

asio::awaitable<bool> load_worker::do_health() {
    const auto answered = co_await ask("GET", "/healthz", {});
    if (!answered) co_return false;
    if (answered->status != 200) co_return recorder_.failed(label_of(*answered));
    recorder_.answered("health", due_, due_);
    co_return true;
}

// ---- requests ----

/// The first of its round, so it is as late as the round.
asio::awaitable<load_worker::acquired> load_worker::acquire() {
    std::string fault;
    const auto answered = co_await ask("POST", target_, acquire_body_);
    if (!answered) co_return acquired::failed;
    if (answered->status == 200 && holds(answered->body, quoted_resource_)) {
        if (holds(answered->body, "\"acquired\":false")) {
            recorder_.answered("refuse", due_, due_);
            recorder_.refused();
            co_return acquired::refused;
        }
        const std::optional<std::int64_t> token = number_after(answered->body, token_mark);
        if (token && holds(answered->body, "\"acquired\":true") && holds(answered->body, quoted_owner_)) {
            fencing_token_ = *token;
            recorder_.answered("acquire", due_, due_);
            co_return acquired::granted;
        }
        fault = "acquire: the answer is not a lock of ours";
    } else {
        fault = answered->status == 200 ? "acquire: the answer is for another resource" : label_of(*answered);
    }
    recorder_.failed(std::move(fault));
    co_return acquired::failed;
}

asio::awaitable<bool> load_worker::renew() {
    renew_target_.assign(target_).append("/renew");
    body_.assign("{\"owner\":").append(quoted_owner_).append(",\"ttl_seconds\":");
    body_.append(std::to_string(plan_.ttl_seconds)).append(",\"fencing_token\":");
    body_.append(std::to_string(fencing_token_)).append("}");
    const clock::time_point sent = clock::now();
    const auto answered = co_await ask("POST", renew_target_, body_);
    if (!answered) co_return false;
    if (answered->status != 200) co_return recorder_.failed("renew: " + label_of(*answered));
    if (!names_our_lock(answered->body)) co_return recorder_.failed("renew: the answer is not our lock");
    recorder_.answered("renew", due_, sent);
    co_return true;
}

asio::awaitable<bool> load_worker::look() {
    const clock::time_point sent = clock::now();
    const auto answered = co_await ask("GET", target_, {});
    if (!answered) co_return false;
    if (answered->status != 200) co_return recorder_.failed("look: " + label_of(*answered));
    if (!names_our_lock(answered->body)) co_return recorder_.failed("look: the answer is not our lock");
    recorder_.answered("look", due_, sent);
    co_return true;
}

/// The lock is ours, so that somebody else's acquire is refused for certain.
asio::awaitable<bool> load_worker::be_refused() {
    const clock::time_point sent = clock::now();
    const auto answered = co_await ask("POST", target_, rival_body_);
    if (!answered) co_return false;
    if (answered->status != 200) co_return recorder_.failed("refuse: " + label_of(*answered));
    if (!holds(answered->body, "\"acquired\":false") || !holds(answered->body, quoted_resource_))
        co_return recorder_.failed("refuse: our lock was not refused to another");
    recorder_.answered("refuse", due_, sent);
    recorder_.refused();
    co_return true;
}

asio::awaitable<bool> load_worker::release() {
    body_.assign("{\"owner\":").append(quoted_owner_).append(",\"fencing_token\":");
    body_.append(std::to_string(fencing_token_)).append("}");
    const clock::time_point sent = clock::now();
    const auto answered = co_await ask("DELETE", target_, body_);
    if (!answered) co_return false;
    if (answered->status != 204) co_return recorder_.failed("release: " + label_of(*answered));
    recorder_.answered("release", due_, sent);
    co_return true;
}

/// The answer before may have closed the connection. Nothing comes back after an error, which was recorded.
asio::awaitable<std::optional<answer>> load_worker::ask(std::string_view method, std::string_view target,
                                                        std::string_view body) {
    if (!connection_.is_open()) {
        const bool is_connected = co_await connect();
        if (!is_connected) co_return std::nullopt;
    }
    const auto answered = co_await connection_.exchange(method, target, body);
    if (answered) co_return *answered;
    recorder_.failed("transport: " + answered.error().message());
    co_return std::nullopt;
}

void load_worker::choose_resource(std::string_view prefix) {
    std::uniform_int_distribution<std::int64_t> choice(0, plan_.resources - 1);
    const std::string number = std::to_string(choice(random_));
    quoted_resource_.assign("\"").append(prefix).append(number).append("\"");
    target_.assign("/locks/").append(prefix).append(number);
}

bool load_worker::names_our_lock(std::string_view body) const {
    return number_after(body, token_mark) == fencing_token_ && holds(body, quoted_resource_) &&
           holds(body, quoted_owner_);
}

}  // namespace holdfast::cli
