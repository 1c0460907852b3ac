#include "support/lock_client.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <set>
#include <stdexcept>
#include <utility>

namespace holdfast::tests {
namespace {

namespace json = boost::json;

const std::set<std::string> lock_members{"resource",   "owner",         "acquired_at",
                                         "expires_at", "expires_in_ms", "fencing_token"};

std::set<std::string> members_of(const json::object& object) {
    std::set<std::string> names;
    for (const auto& member : object)
        names.insert(std::string(member.key()));
    return names;
}

const json::object* lock_in(const json::value& body) {
    if (!body.is_object()) return nullptr;
    const auto* inner = body.as_object().if_contains("lock");
    if (inner) return inner->if_object();
    return body.as_object().contains("fencing_token") ? &body.as_object() : nullptr;
}

std::string text_of(const json::object& object, const char* name) {
    const auto* value = object.if_contains(name);
    return value && value->is_string() ? std::string(value->as_string()) : std::string();
}

std::string fault_of_lock(const json::object& lock) {
    if (members_of(lock) != lock_members) return "not the members of a lock";
    for (const char* name : {"resource", "owner"})
        if (text_of(lock, name).empty()) return std::string(name) + " is no text";
    for (const char* name : {"acquired_at", "expires_at"})
        if (!parse_time_us(text_of(lock, name))) return std::string(name) + " is not in the time format";
    const auto* left = lock.at("expires_in_ms").if_int64();
    const auto* token = lock.at("fencing_token").if_int64();
    if (!left || *left < 0) return "expires_in_ms is no integer from 0 up";
    if (!token || *token < 1 || *token >= (std::int64_t{1} << 53)) return "the token is no integer below 2^53";
    const auto whole = *parse_time_us(text_of(lock, "expires_at")) - *parse_time_us(text_of(lock, "acquired_at"));
    if (whole <= 0) return "the lease ends before it begins";
    return {};
}

std::string fault_of_success(const reply& reply) {
    if (reply.answer.header("Cache-Control") != "no-store") return "a lock answer that may be stored";
    if (reply.status == 204) return reply.answer.body.empty() ? "" : "a 204 with a body";
    if (!reply.json.is_object()) return "the body is no JSON object";
    if (reply.answer.header("Content-Type") != "application/json") return "the content type is not application/json";
    const json::object& body = reply.json.as_object();
    if (!body.contains("acquired")) return fault_of_lock(body);
    if (!body.at("acquired").is_bool()) return "acquired is neither true nor false";
    if (body.at("acquired").as_bool()) {
        if (members_of(body) != std::set<std::string>{"acquired", "lock"} || !body.at("lock").is_object())
            return "not the members of a grant";
        const std::string fault = fault_of_lock(body.at("lock").as_object());
        if (!fault.empty()) return fault;
        return body.at("lock").at("expires_in_ms").as_int64() > 0 ? "" : "granted with nothing left";
    }
    if (members_of(body) != std::set<std::string>{"acquired", "resource", "retry_after_ms"})
        return "not the members of a refusal";
    const auto* wait = body.at("retry_after_ms").if_int64();
    return wait && *wait >= 1 ? "" : "retry_after_ms is no integer from 1 up";
}

std::string fault_of_problem(const reply& reply) {
    if (reply.answer.header("Content-Type") != "application/problem+json") return "an error that is no problem+json";
    if (!reply.json.is_object()) return "a problem that is no JSON object";
    const json::object& body = reply.json.as_object();
    for (const char* name : {"type", "title", "detail", "instance"})
        if (text_of(body, name).empty()) return std::string("a problem without ") + name;
    if (reply.problem().empty()) return "a problem of no known kind";
    const auto* status = body.if_contains("status");
    if (!status || !status->is_int64() || status->as_int64() != reply.status) return "a problem with another status";
    if ((reply.status == 503 || reply.status == 429) && reply.answer.header("Retry-After").empty())
        return "no Retry-After";
    for (const char* secret : {"SELECT", "INSERT", "UPDATE", "SQLSTATE", "pqxx", "postgres", "127.0.0.1"})
        if (reply.answer.body.find(secret) != std::string::npos) return "a problem that tells too much";
    return {};
}

}  // namespace

bool reply::acquired() const {
    if (!json.is_object() || !json.as_object().contains("acquired"))
        throw std::runtime_error("neither granted nor refused: " + text());
    return json.as_object().at("acquired").as_bool();
}

lease_recorder::lease reply::lease() const {
    const json::object* lock = lock_in(json);
    if (!lock) throw std::runtime_error("no lease in the answer: " + text());
    return {.resource = text_of(*lock, "resource"),
            .owner = text_of(*lock, "owner"),
            .token = lock->at("fencing_token").to_number<std::int64_t>(),
            .acquired_at = text_of(*lock, "acquired_at"),
            .expires_at = text_of(*lock, "expires_at"),
            .expires_in = std::chrono::milliseconds(lock->at("expires_in_ms").to_number<std::int64_t>())};
}

std::int64_t reply::retry_after_ms() const {
    if (!json.is_object() || !json.as_object().contains("retry_after_ms"))
        throw std::runtime_error("no retry_after_ms: " + text());
    return json.as_object().at("retry_after_ms").to_number<std::int64_t>();
}

std::string reply::problem() const {
    static const std::string prefix = "/problems/";
    if (!json.is_object()) return {};
    const std::string type = text_of(json.as_object(), "type");
    return type.starts_with(prefix) ? type.substr(prefix.size()) : std::string();
}

std::string reply::text() const {
    if (status == 0) return "no answer: " + failure;
    return std::to_string(status) + " " + answer.reason + " " + answer.body.substr(0, 500);
}

std::chrono::milliseconds reply::duration() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(when.received - when.sent);
}

std::string path_segment(const std::string& name) {
    static const char* const digits = "0123456789ABCDEF";
    std::string encoded;
    for (const char each : name) {
        const auto byte = static_cast<unsigned char>(each);
        if (std::isalnum(byte) || each == '-' || each == '_' || each == '~' || each == '.') {
            encoded += each;
        } else {
            encoded += {'%', digits[byte >> 4], digits[byte & 15]};
        }
    }
    return encoded;
}

std::optional<std::int64_t> parse_time_us(const std::string& text) {
    static const std::string pattern = "dddd-dd-ddTdd:dd:dd.ddddddZ";
    if (text.size() != pattern.size()) return std::nullopt;
    for (std::size_t i = 0; i < text.size(); ++i)
        if (pattern[i] == 'd' ? !std::isdigit(static_cast<unsigned char>(text[i])) : text[i] != pattern[i])
            return std::nullopt;
    const auto number = [&](std::size_t from, std::size_t digits) { return std::stoi(text.substr(from, digits)); };
    namespace chrono = std::chrono;
    const chrono::year_month_day day(chrono::year(number(0, 4)), chrono::month(static_cast<unsigned>(number(5, 2))),
                                     chrono::day(static_cast<unsigned>(number(8, 2))));
    if (!day.ok()) return std::nullopt;
    const auto moment = chrono::sys_days(day) + chrono::hours(number(11, 2)) + chrono::minutes(number(14, 2)) +
                        chrono::seconds(number(17, 2)) + chrono::microseconds(number(20, 6));
    return chrono::duration_cast<chrono::microseconds>(moment.time_since_epoch()).count();
}

std::string outside_the_contract(const reply& reply) {
    static const std::set<int> problems{400, 403, 404, 405, 408, 413, 414, 415, 417, 422, 431, 503};
    // The balancer has no request id to give with its own 503.
    if (reply.answer.header("X-Request-Id").empty() && reply.status != 503) return "no X-Request-Id";
    if (reply.status == 200 || reply.status == 204) return fault_of_success(reply);
    if (problems.contains(reply.status)) return fault_of_problem(reply);
    return "a status that has no place here";
}

void lock_client::move_to(std::uint16_t port) {
    if (port != port_) connection_.reset();
    port_ = port;
}

reply lock_client::acquire(const std::string& resource, const std::string& owner, std::int64_t ttl_seconds,
                           const std::string& idempotency_key) {
    test::http_client::header_list headers;
    if (!idempotency_key.empty()) headers.emplace_back("Idempotency-Key", idempotency_key);
    return request("POST", "/locks/" + path_segment(resource),
                   json::serialize(json::object{{"owner", owner}, {"ttl_seconds", ttl_seconds}}), headers);
}

reply lock_client::renew(const std::string& resource, const std::string& owner, std::int64_t ttl_seconds,
                         std::optional<std::int64_t> token) {
    json::object body{{"owner", owner}, {"ttl_seconds", ttl_seconds}};
    if (token) body["fencing_token"] = *token;
    return request("POST", "/locks/" + path_segment(resource) + "/renew", json::serialize(body));
}

reply lock_client::release(const std::string& resource, const std::string& owner, std::optional<std::int64_t> token) {
    json::object body{{"owner", owner}};
    if (token) body["fencing_token"] = *token;
    return request("DELETE", "/locks/" + path_segment(resource), json::serialize(body));
}

reply lock_client::post_release(const std::string& resource, const std::string& owner,
                                std::optional<std::int64_t> token) {
    json::object body{{"owner", owner}};
    if (token) body["fencing_token"] = *token;
    return request("POST", "/locks/" + path_segment(resource) + "/release", json::serialize(body));
}

reply lock_client::request(const std::string& method, const std::string& target, const std::string& body,
                           const test::http_client::header_list& headers) {
    reply reply;
    try {
        // A kept connection that became readable between requests was closed by the other side.
        if (connection_ && !connection_->silent_for(std::chrono::milliseconds(0))) connection_.reset();
        if (!connection_) connection_ = test::http_client::connect("127.0.0.1", port_, patience_);
        reply.when.sent = lease_recorder::clock::now();
        reply.answer = connection_->request(method, target, body, headers);
        reply.when.received = lease_recorder::clock::now();
        reply.status = reply.answer.status;
        if (reply.answer.header("Connection") == "close") connection_.reset();
    } catch (const test::http_client_error& error) {
        reply.when.received = lease_recorder::clock::now();
        reply.failure = error.what();
        connection_.reset();
    }
    boost::system::error_code no_json;
    reply.json = json::parse(reply.answer.body, no_json);
    if (no_json) reply.json = nullptr;
    return reply;
}

const reply& recorded_client::judged(const std::string& what, const reply& reply) {
    if (reply.status == 0) return reply;
    const std::string fault = outside_the_contract(reply);
    if (!fault.empty()) recorder_.outside_the_contract(what + " by " + owner_ + ": " + fault + ": " + reply.text());
    return reply;
}

reply recorded_client::acquire(const std::string& resource, std::int64_t ttl_seconds,
                               const std::string& idempotency_key) {
    const reply reply = judged("acquire", client_.acquire(resource, owner_, ttl_seconds, idempotency_key));
    if (reply.status == 200 && reply.acquired()) {
        const auto lease = reply.lease();
        const auto whole_us = *parse_time_us(lease.expires_at) - *parse_time_us(lease.acquired_at);
        if (lease.resource != resource || lease.owner != owner_ || whole_us != ttl_seconds * 1'000'000)
            recorder_.outside_the_contract("not what was asked for by " + owner_ + ": " + reply.text());
        recorder_.granted(lease, reply.when);
    } else if (reply.status == 0 || reply.problem() == "outcome-unknown") {
        recorder_.uncertain(resource, owner_, reply.when.sent);
    } else if (reply.status != 200 && reply.status != 503) {
        recorder_.outside_the_contract("acquire by " + owner_ + ": " + reply.text());
    }
    return reply;
}

reply recorded_client::renew(const std::string& resource, std::int64_t ttl_seconds, std::int64_t token) {
    const reply reply = judged("renew", client_.renew(resource, owner_, ttl_seconds, token));
    if (reply.status == 200) {
        recorder_.renewed(reply.lease(), reply.when);
    } else if (reply.status == 0 || reply.problem() == "outcome-unknown") {
        recorder_.uncertain(resource, owner_, reply.when.sent);
    }
    return reply;
}

reply recorded_client::release(const std::string& resource, std::int64_t token) {
    const reply reply = judged("release", client_.release(resource, owner_, token));
    recorder_.ended(resource, owner_, reply.when.sent);
    return reply;
}

reply recorded_client::look(const std::string& resource) {
    return judged("look", client_.look(resource));
}

}  // namespace holdfast::tests
