#include "support/lock_history.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <sstream>
#include <thread>
#include <utility>

namespace holdfast::tests {
namespace {

const char* name_of(call_kind kind) {
    switch (kind) {
        case call_kind::acquire:
            return "acquire";
        case call_kind::renew:
            return "renew";
        case call_kind::release:
            return "release";
        case call_kind::look:
            return "look";
    }
    return "?";
}

const char* name_of(call_answer answer) {
    switch (answer) {
        case call_answer::lease:
            return "lease";
        case call_answer::refused:
            return "refused";
        case call_answer::released:
            return "released";
        case call_answer::not_found:
            return "not found";
        case call_answer::forbidden:
            return "forbidden";
        case call_answer::unknown:
            return "unknown";
    }
    return "?";
}

}  // namespace

std::string lock_call::text() const {
    std::ostringstream text;
    text << name_of(kind);
    if (!owner.empty()) text << " by " << owner;
    if (!key.empty()) text << " key " << key;
    if (token) text << " token " << *token;
    if (ttl_us) text << " ttl " << ttl_us;
    text << " [" << called_us << ", " << returned_us << "]: " << name_of(answer);
    if (answer == call_answer::lease)
        text << " of " << shown_owner << " token " << shown_token << " from " << acquired_at_us << " to "
             << expires_at_us << ", " << expires_in_ms << " ms left";
    if (answer == call_answer::refused) text << " for " << retry_after_ms << " ms";
    return text.str();
}

void lock_history::add(lock_call call) {
    const std::scoped_lock lock(mutex_);
    calls_.push_back(std::move(call));
}

void lock_history::complain(std::string what) {
    const std::scoped_lock lock(mutex_);
    complaints_.push_back(std::move(what));
}

std::vector<lock_call> lock_history::calls() const {
    const std::scoped_lock lock(mutex_);
    return calls_;
}

std::vector<std::string> lock_history::complaints() const {
    const std::scoped_lock lock(mutex_);
    return complaints_;
}

std::int64_t wall_clock_us() {
    return std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now()).time_since_epoch().count();
}

history_client::history_client(std::uint16_t port, std::string resource, std::string owner,
                               std::chrono::milliseconds finality, lock_history& history)
    : client_(port),
      port_(port),
      resource_(std::move(resource)),
      owner_(std::move(owner)),
      finality_(finality),
      history_(history) {}

void history_client::move_to(std::uint16_t port) {
    port_ = port;
    client_.move_to(port);
}

lock_call history_client::acquire(std::int64_t ttl_seconds, const std::string& key) {
    lock_call call = begin(call_kind::acquire, ttl_seconds);
    call.key = key;
    return end(std::move(call), client_.acquire(resource_, owner_, ttl_seconds, key));
}

lock_call history_client::renew(std::int64_t ttl_seconds, std::optional<std::int64_t> token) {
    lock_call call = begin(call_kind::renew, ttl_seconds);
    call.token = token;
    return end(std::move(call), client_.renew(resource_, owner_, ttl_seconds, token));
}

lock_call history_client::release(std::optional<std::int64_t> token) {
    lock_call call = begin(call_kind::release);
    call.token = token;
    return end(std::move(call), client_.release(resource_, owner_, token));
}

lock_call history_client::look() {
    lock_call call = begin(call_kind::look);
    return end(std::move(call), client_.look(resource_));
}

lock_call history_client::begin(call_kind kind, std::int64_t ttl_seconds) const {
    lock_call call;
    call.kind = kind;
    if (kind != call_kind::look) call.owner = owner_;
    call.ttl_us = ttl_seconds * 1'000'000;
    call.called_us = wall_clock_us();
    return call;
}

lock_call history_client::end(lock_call call, const reply& reply) {
    call.returned_us = wall_clock_us() + 1;  // Rounded up.
    const bool unsaid = reply.status == 0 || reply.status == 500 || reply.problem() == "outcome-unknown";
    if (reply.status != 0) {
        const std::string fault = outside_the_contract(reply);
        if (!fault.empty()) history_.complain(call.text() + ": " + fault + ": " + reply.text());
    }
    if (unsaid) {
        call.returned_us = call.called_us + std::chrono::microseconds(finality_).count();
        if (call.kind != call_kind::look) history_.add(call);
    } else if (reply.status != 503) {  // Any other 503 certainly had no effect.
        read_answer(call, reply);
        history_.add(call);
    }
    return call;
}

void history_client::read_answer(lock_call& call, const reply& reply) {
    if (reply.status == 204) {
        call.answer = call_answer::released;
    } else if (reply.status == 404) {
        call.answer = call_answer::not_found;
    } else if (reply.status == 403) {
        call.answer = call_answer::forbidden;
    } else if (reply.status == 200 && call.kind == call_kind::acquire && !reply.acquired()) {
        call.answer = call_answer::refused;
        call.retry_after_ms = reply.retry_after_ms();
    } else if (reply.status == 200) {
        const auto lease = reply.lease();
        call.answer = call_answer::lease;
        call.shown_owner = lease.owner;
        call.shown_token = lease.token;
        call.acquired_at_us = parse_time_us(lease.acquired_at).value();
        call.expires_at_us = parse_time_us(lease.expires_at).value();
        call.expires_in_ms = lease.expires_in.count();
    } else {
        history_.complain(call.text() + ": " + reply.text());
    }
}

void history_client::abandon_acquire(std::int64_t ttl_seconds, const std::string& key,
                                     std::chrono::microseconds patience) {
    lock_call call = begin(call_kind::acquire, ttl_seconds);
    call.key = key;
    abandon(std::move(call), "",
            boost::json::serialize(boost::json::object{{"owner", owner_}, {"ttl_seconds", ttl_seconds}}), patience);
}

void history_client::abandon_renew(std::int64_t ttl_seconds, std::chrono::microseconds patience) {
    abandon(begin(call_kind::renew, ttl_seconds), "/renew",
            boost::json::serialize(boost::json::object{{"owner", owner_}, {"ttl_seconds", ttl_seconds}}), patience);
}

void history_client::abandon_release(std::chrono::microseconds patience) {
    abandon(begin(call_kind::release), "/release", boost::json::serialize(boost::json::object{{"owner", owner_}}),
            patience);
}

void history_client::abandon(lock_call call, const std::string& target, const std::string& body,
                             std::chrono::microseconds patience) {
    try {
        auto connection = test::http_client::connect("127.0.0.1", port_);
        call.called_us = wall_clock_us();
        test::http_client::header_list headers;
        if (!call.key.empty()) headers.emplace_back("Idempotency-Key", call.key);
        connection.send(test::http_client::format("POST", "/locks/" + path_segment(resource_) + target, body, headers));
        std::this_thread::sleep_for(patience);
        connection.reset();
    } catch (const test::http_client_error&) {
        // It may have been sent all the same.
    }
    call.returned_us = call.called_us + std::chrono::microseconds(finality_).count();
    history_.add(std::move(call));
}

}  // namespace holdfast::tests
