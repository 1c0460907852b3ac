#include "holdfast/http/handlers.hpp"

#include "holdfast/http/command_reader.hpp"
#include "holdfast/http/embedded_documents.hpp"
#include "holdfast/http/json_writer.hpp"
#include "holdfast/http/problem.hpp"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

namespace holdfast::http {
namespace {

using boost::asio::awaitable;

/// The validated parts of a request on a lock, or the answer that refuses it.
struct lock_request {
    std::optional<domain::resource_name> resource;
    command_members members;
    std::optional<reply> refusal;
};

std::optional<domain::resource_name> read_resource(const request& request, field_errors& errors) {
    auto decoded = percent_decode(request.route.variable);
    auto resource = domain::resource_name::parse(std::move(decoded).value_or(std::string()));
    if (resource) return std::move(*resource);
    const bool too_long = resource.error() == domain::field_fault::too_long;
    errors.add(
        "resource", resource.error(),
        too_long ? "must have at most 255 bytes once it is decoded" : "must be UTF-8 without control characters");
    return std::nullopt;
}

/// 400 for a body that is no JSON, else all field errors of path and body at once (422).
lock_request read_lock_request(const request& request, std::int64_t ttl_seconds_max) {
    lock_request read;
    field_errors errors;
    read.resource = read_resource(request, errors);
    const auto rules = members_of(request.route.meant);
    if (!rules.empty() && !read_command(request.body, rules, ttl_seconds_max, read.members, errors))
        read.refusal = problem_reply(problem::invalid_json, "The body is no JSON text in UTF-8.", request.route.path);
    else if (!errors.empty())
        read.refusal = validation_reply(errors, request.route.path);
    return read;
}

reply json_reply(std::string json) {
    return reply(200, json_type, std::move(json));
}

reply not_holder(const request& request) {
    return problem_reply(problem::forbidden, "The lock is held by another owner or under another fencing token.",
                         request.route.path);
}

reply not_held(const request& request) {
    return problem_reply(problem::not_found, "The lock is not held: it was never taken, was released or has expired.",
                         request.route.path);
}

reply no_place(const request& request) {
    return problem_reply(problem::not_found,
                         "The owner has no place in the queue: it did not ask to wait, has left, came back too late or "
                         "holds the lock already.",
                         request.route.path);
}

std::string unknown_outcome_detail(const request& request, std::chrono::milliseconds final_after) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(final_after).count();
    std::string detail = "The request may have taken effect. What happened is final " + std::to_string(seconds) +
                         " seconds after this answer: then GET the lock and compare its owner and fencing_token. ";
    if (request.route.meant == operation::acquire)
        return detail + "Repeating the request with the same Idempotency-Key is safe at any time.";
    if (request.route.meant == operation::leave) return detail + "Repeating the request is safe at any time.";
    return detail +
           "Repeating the request under its fencing_token is safe; an acquire is safe to repeat at any time with the "
           "same Idempotency-Key.";
}

reply health() {
    return json_reply(R"({"status":"ok"})");
}

reply openapi() {
    const auto documents = embedded_documents();
    const auto found = std::find_if(documents.begin(), documents.end(),
                                    [](const auto& document) { return document.path == "openapi.json"; });
    reply answer(200, json_type, std::string(found->text));
    answer.no_store = false;
    return answer;
}

awaitable<reply> at_once(reply answer) {
    co_return answer;
}

reply tell_problem_type(const request& request) {
    if (const auto* type = find_problem_type(request.route.variable)) return problem_type_reply(*type);
    return problem_reply(problem::not_found, "There is no problem type of that name.", request.route.path);
}

}  // namespace

awaitable<reply> handlers::handle(const request& request) {
    std::string cause;
    try {
        co_return co_await dispatch(request);
    } catch (const boost::system::system_error& error) {
        if (error.code() == boost::asio::error::operation_aborted) throw;
        cause = error.what();
    } catch (const std::exception& error) {
        cause = error.what();
    }
    co_return internal_failure(std::move(cause), request);
}

/// No coroutine itself: each one costs a request an allocation.
awaitable<reply> handlers::dispatch(const request& request) {
    switch (request.route.meant) {
        case operation::acquire:
            return acquire(request);
        case operation::look:
            return look(request);
        case operation::renew:
            return renew(request);
        case operation::release:
            return release(request);
        case operation::leave:
            return leave(request);
        case operation::health:
            return at_once(health());
        case operation::readiness:
            return at_once(tell_readiness(request));
        case operation::openapi:
            return at_once(openapi());
        case operation::problem_type:
            return at_once(tell_problem_type(request));
        case operation::metrics:
            return at_once(reply(200, metrics_type, metrics_.page()));
    }
    return at_once(internal_failure("a route without a handler", request));
}

/// No coroutine: what reading needs room for, a request that waits need not keep.
awaitable<reply> handlers::acquire(const request& request) {
    lock_request read = read_lock_request(request, settings_.ttl_seconds_max);
    if (read.refusal) return at_once(std::move(*read.refusal));
    std::optional<domain::idempotency_key> key;
    if (request.idempotency_key.count > 0) key = *domain::idempotency_key::parse(request.idempotency_key.first);
    domain::acquire_command command(std::move(*read.resource), std::move(*read.members.owner), *read.members.ttl,
                                    std::move(key));
    return carry_out(std::move(command), read.members.wait.value_or(std::chrono::seconds(0)), request);
}

awaitable<reply> handlers::carry_out(domain::acquire_command command, std::chrono::seconds wait,
                                     const request& request) {
    const bool waits = wait.count() > 0;
    if (waits) request.requester->may_wait(wait);
    const domain::resource_name resource = command.resource();
    auto outcome = co_await service_.acquire(std::move(command), wait, request.requester);
    if (!outcome) co_return acquire_failure(outcome.error(), waits, request);
    co_return answer_acquire(std::move(*outcome), resource, request);
}

reply handlers::answer_acquire(service::acquire_answer answer, const domain::resource_name& resource,
                               const request& request) const {
    struct encoder {
        const domain::resource_name& resource;
        const http::request& request;

        reply operator()(service::grant& grant) const {
            reply granted = json_reply(granted_json(grant));
            granted.undelivered = std::move(grant.undelivered);
            return granted;
        }
        reply operator()(const service::refusal& refusal) const { return json_reply(refused_json(resource, refusal)); }
        reply operator()(service::queue_full) const {
            return problem_reply(problem::queue_full, "All places in the queue for this resource are taken.",
                                 request.route.path);
        }
    };
    return std::visit(encoder{resource, request}, answer);
}

/// Who waits on a node that goes down is sent to another one at once: its next request must not come back here.
reply handlers::acquire_failure(boost::system::error_code reason, bool waits, const request& request) {
    if (!waits || !readiness_.draining() || reason != domain::errc::unavailable) return failure(reason, request);
    reply answer = problem_reply(problem::unavailable,
                                 "This node is going down. Nothing was granted. If the owner had a place in the "
                                 "queue, it is kept for a moment: ask again under the same owner.",
                                 request.route.path);
    answer.close = true;
    return answer;
}

awaitable<reply> handlers::look(const request& request) {
    lock_request read = read_lock_request(request, settings_.ttl_seconds_max);
    if (read.refusal) co_return std::move(*read.refusal);
    domain::look_command command(std::move(*read.resource));
    const auto outcome = co_await service_.look(std::move(command));
    if (!outcome) co_return failure(outcome.error(), request);
    switch (outcome->result()) {
        case domain::look_result::found:
            co_return json_reply(lock_json(outcome->lock()));
        case domain::look_result::not_found:
            co_return not_held(request);
    }
    co_return internal_failure("a look outcome outside its enumeration", request);
}

awaitable<reply> handlers::renew(const request& request) {
    lock_request read = read_lock_request(request, settings_.ttl_seconds_max);
    if (read.refusal) co_return std::move(*read.refusal);
    domain::renew_command command(std::move(*read.resource), std::move(*read.members.owner), *read.members.ttl,
                                  read.members.fencing_token);
    const auto outcome = co_await service_.renew(std::move(command));
    if (!outcome) co_return failure(outcome.error(), request);
    switch (outcome->result()) {
        case domain::renew_result::renewed:
            co_return json_reply(lock_json(outcome->lock()));
        case domain::renew_result::not_found:
            co_return not_held(request);
        case domain::renew_result::forbidden:
            co_return not_holder(request);
    }
    co_return internal_failure("a renew outcome outside its enumeration", request);
}

awaitable<reply> handlers::release(const request& request) {
    lock_request read = read_lock_request(request, settings_.ttl_seconds_max);
    if (read.refusal) co_return std::move(*read.refusal);
    domain::release_command command(std::move(*read.resource), std::move(*read.members.owner),
                                    read.members.fencing_token);
    const auto outcome = co_await service_.release(std::move(command));
    if (!outcome) co_return failure(outcome.error(), request);
    switch (*outcome) {
        case domain::release_result::released:
            co_return reply(204);
        case domain::release_result::not_found:
            co_return not_held(request);
        case domain::release_result::forbidden:
            co_return not_holder(request);
        case domain::release_result::awaited:
            break;
    }
    co_return internal_failure("a release outcome that is none", request);
}

awaitable<reply> handlers::leave(const request& request) {
    lock_request read = read_lock_request(request, settings_.ttl_seconds_max);
    if (read.refusal) co_return std::move(*read.refusal);
    domain::leave_command command(std::move(*read.resource), std::move(*read.members.owner));
    const auto outcome = co_await service_.leave(std::move(command));
    if (!outcome) co_return failure(outcome.error(), request);
    switch (*outcome) {
        case domain::leave_result::left:
            co_return reply(204);
        case domain::leave_result::not_found:
            co_return no_place(request);
    }
    co_return internal_failure("a leave outcome outside its enumeration", request);
}

reply handlers::tell_readiness(const request& request) const {
    if (readiness_.ready()) return json_reply(R"({"status":"ready"})");
    return problem_reply(problem::unavailable, "This node cannot write to the database, or is going down.",
                         request.route.path);
}

reply handlers::failure(boost::system::error_code reason, const request& request) {
    const auto path = request.route.path;
    if (reason.category() != domain::errc_category()) return internal_failure(reason.message(), request);
    switch (static_cast<domain::errc>(reason.value())) {
        case domain::errc::unavailable:
            return problem_reply(problem::unavailable, "The database cannot be used now. The request had no effect.",
                                 path);
        case domain::errc::overloaded:
            return problem_reply(problem::overloaded, "The request could not be served in time. It had no effect.",
                                 path);
        case domain::errc::outcome_unknown:
            return problem_reply(problem::outcome_unknown,
                                 unknown_outcome_detail(request, settings_.outcome_final_after), path);
        case domain::errc::internal:
            break;
    }
    return internal_failure(reason.message(), request);
}

reply handlers::internal_failure(std::string cause, const request& request) {
    const std::string id = ids_.make();
    reply answer =
        problem_reply(problem::internal_error, "The node's log explains error " + id + ".", request.route.path);
    answer.error_id = id;
    answer.log_cause = std::move(cause);
    return answer;
}

}  // namespace holdfast::http
