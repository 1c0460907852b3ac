#include "holdfast/cli/waiting_owner.hpp"

#include "holdfast/cli/answer_text.hpp"

#include <utility>

namespace holdfast::cli {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;
using client::answer;

namespace {

/// Clocks of two machines may differ by so much over the longest wait.
constexpr auto clock_tolerance = 100ms;

}  // namespace

waiting_owner::waiting_owner(asio::any_io_executor executor, const load_plan& plan, load_recorder& recorder,
                             const found_server& server, std::size_t server_number, contended_resource& resource,
                             std::string name, std::size_t number)
    : pause(executor),
      plan_(plan),
      recorder_(recorder),
      connection_(executor, server.endpoint, server.authority),
      server_number_(server_number),
      resource_(resource),
      base_name_(std::move(name)),
      number_(number),
      target_("/locks/" + resource.name),
      quoted_resource_('"' + resource.name + '"') {
    become(number);
}

void waiting_owner::become(std::size_t number) {
    number_ = number;
    quoted_owner_.assign("\"").append(base_name_).append("-").append(std::to_string(number)).append("\"");
    acquire_body_.assign("{\"owner\":").append(quoted_owner_).append(",\"ttl_seconds\":");
    acquire_body_.append(std::to_string(plan_.ttl_seconds)).append(",\"wait_seconds\":");
    acquire_body_.append(std::to_string(plan_.wait_seconds)).append("}");
}

void waiting_owner::leave() noexcept {
    is_leaving_ = true;
    connection_.close();
}

void waiting_owner::close_if_stuck(clock::time_point moment) {
    const std::chrono::seconds wait(is_standing_ ? plan_.wait_seconds : 0);
    connection_.close_if_stuck(moment - wait);
}

asio::awaitable<bool> waiting_owner::connect() {
    if (connection_.is_open()) co_return true;
    const error_code fault = co_await connection_.open();
    if (fault) co_return fail("connect: " + fault.message());
    co_return true;
}

asio::awaitable<waiting_owner::turn> waiting_owner::stand_in_line() {
    resource_.history.asked();
    is_standing_ = true;
    const clock::time_point asked_at = clock::now();
    const auto answered = co_await ask("POST", target_, acquire_body_);
    is_standing_ = false;
    resource_.history.answered();
    co_return answered ? read_answer(*answered, asked_at) : turn::failed;
}

waiting_owner::turn waiting_owner::read_answer(const answer& answered, clock::time_point asked_at) {
    const clock::time_point received_at = clock::now();
    if (answered.status != 200) {
        fail(label_of(answered));
    } else if (!holds(answered.body, quoted_resource_)) {
        fail("acquire: the answer is for another resource");
    } else if (!holds(answered.body, "\"acquired\":false")) {
        return read_grant(answered, asked_at, received_at);
    } else if (received_at - asked_at + clock_tolerance < std::chrono::seconds(plan_.wait_seconds)) {
        fail("acquire: refused before the time was up");
    } else {
        recorder_.time_up();
        return turn::time_up;
    }
    return turn::failed;
}

waiting_owner::turn waiting_owner::read_grant(const answer& answered, clock::time_point asked_at,
                                              clock::time_point received_at) {
    const std::string_view body = answered.body;
    const auto token = number_after(body, "\"fencing_token\":");
    const auto left_ms = number_after(body, "\"expires_in_ms\":");
    const auto acquired_at = moment_after(body, "\"acquired_at\":");
    const auto expires_at = moment_after(body, "\"expires_at\":");
    if (!token || !left_ms || !acquired_at || !expires_at || !holds(body, "\"acquired\":true") ||
        !holds(body, quoted_owner_)) {
        fail("acquire: the answer is not a lock of ours");
        return turn::failed;
    }
    seen_grant grant;
    grant.fencing_token = fencing_token_ = *token;
    grant.owner = number_;
    grant.server = server_number_;
    grant.acquired_at = *acquired_at;
    grant.expires_at = *expires_at;
    grant.asked_at = asked_at;
    grant.received_at = received_at;
    const std::int64_t waited_ms = number_after(body, "\"waited_ms\":").value_or(0);
    grant.trusted_until = asked_at + std::chrono::milliseconds(waited_ms + *left_ms);
    recorder_.granted(grant, resource_.history.granted(grant));
    return turn::granted;
}

asio::awaitable<bool> waiting_owner::release() {
    body_.assign("{\"owner\":").append(quoted_owner_).append(",\"fencing_token\":");
    body_.append(std::to_string(fencing_token_)).append("}");
    if (!connection_.is_open()) co_await connect();  // so that the moment of sending is that of sending
    const clock::time_point sent = clock::now();
    resource_.history.releasing(fencing_token_, sent, server_number_);
    const auto answered = co_await ask("DELETE", target_, body_);
    if (answered && answered->status == 204) {
        recorder_.answered("release", sent, sent);
        co_return true;
    }
    resource_.history.release_failed(fencing_token_);
    co_return answered ? fail("release: " + label_of(*answered)) : false;
}

asio::awaitable<bool> waiting_owner::renew() {
    body_.assign("{\"owner\":").append(quoted_owner_).append(",\"ttl_seconds\":");
    body_.append(std::to_string(plan_.ttl_seconds)).append(",\"fencing_token\":");
    body_.append(std::to_string(fencing_token_)).append("}");
    const clock::time_point sent = clock::now();
    const auto answered = co_await ask("POST", target_ + "/renew", body_);
    if (!answered) co_return false;
    const auto left_ms = number_after(answered->body, "\"expires_in_ms\":");
    const auto expires_at = moment_after(answered->body, "\"expires_at\":");
    if (answered->status != 200) co_return fail("renew: " + label_of(*answered));
    if (!left_ms || !expires_at || number_after(answered->body, "\"fencing_token\":") != fencing_token_)
        co_return fail("renew: the answer is not our lock");
    resource_.history.renewed(fencing_token_, *expires_at, sent + std::chrono::milliseconds(*left_ms));
    recorder_.answered("renew", sent, sent);
    co_return true;
}

/// The answer before may have closed the connection. Nothing comes back after an error, which was recorded.
asio::awaitable<std::optional<answer>> waiting_owner::ask(std::string_view method, std::string_view target,
                                                          std::string_view body) {
    if (is_leaving_) co_return std::nullopt;
    if (!connection_.is_open()) {
        const bool is_connected = co_await connect();
        if (!is_connected) co_return std::nullopt;
    }
    const auto answered = co_await connection_.exchange(method, target, body);
    if (answered) co_return *answered;
    fail("transport: " + answered.error().message());
    co_return std::nullopt;
}

bool waiting_owner::fail(std::string label) {
    return is_leaving_ ? false : recorder_.failed(std::move(label));
}

}  // namespace holdfast::cli
