#include "holdfast/pg/queue_rows.hpp"

#include "holdfast/pg/lease_columns.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace holdfast::pg {

using namespace domain;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t payload_bytes_max = 7'900;

/// One command's parameters, with what the query takes for "none".
struct fields {
    std::string_view kind;
    std::string_view owner = "";
    std::int64_t ttl_seconds = 0;
    std::string_view key = "";
    std::int64_t node = -1;
    std::int64_t place = 0;
    std::int64_t attachment = 0;
    std::int64_t token = -1;
};

void ask(fields& to, const acquire_command& command) {
    to.owner = command.owner().text();
    to.ttl_seconds = command.ttl().length().count();
    if (command.key()) to.key = command.key()->text();
}

void name(fields& to, const place& place) {
    to.place = place.number();
    to.attachment = place.attachment();
}

fields fields_of(const stand_command& command) {
    fields result{"stand"};
    ask(result, command.ask());
    if (command.node()) result.node = static_cast<std::int64_t>(*command.node());
    return result;
}

fields fields_of(const claim_command& command) {
    fields result{"claim"};
    ask(result, command.ask());
    name(result, command.place());
    return result;
}

fields fields_of(const withdraw_command& command) {
    fields result{"withdraw"};
    name(result, command.place());
    return result;
}

fields fields_of(const leave_command& command) {
    return {"leave", command.owner().text()};
}

void ask_at(fields& to, std::optional<node_id> at) {
    if (at) to.node = static_cast<std::int64_t>(*at);
}

fields fields_of(const hand_over_command& command) {
    fields result{"hand_over"};
    ask_at(result, command.at());
    return result;
}

fields fields_of(const queue_release_command& command) {
    fields result{command.given_back() ? "give_back" : "release", command.release().owner().text()};
    if (const auto token = command.release().fencing_token()) result.token = token->number();
    ask_at(result, command.at());
    return result;
}

[[noreturn]] void unknown_verdict() {
    throw std::logic_error("unknown verdict of the queue");
}

/// A refusal names at least one millisecond.
milliseconds retry_after(const lease_columns& lease) {
    return std::max(lease.left(), milliseconds(1));
}

milliseconds ends_in(const lease_columns& lease) {
    return std::max(lease.left(), milliseconds(0));
}

std::vector<wake> wakes_of(const result_row& row) {
    return parse_wakes(row.text(column::wakes));
}

std::size_t position_of(const result_row& row) {
    return static_cast<std::size_t>(row.number(column::position));
}

std::optional<queue_grant> grant_of(const acquire_command& command, const lease_columns& lease, const result_row& row) {
    if (lease.expires_in().count() < 1) return std::nullopt;
    return queue_grant(lease.as_lock(command.resource(), command.owner(), row.number(column::fencing_token)));
}

/// A lease that was granted a moment ago lasts at least a second: something is left of it.
std::optional<handover> handed_of(const resource_name& resource, const lease_columns& lease, const result_row& row) {
    const std::int64_t place = row.number(column::handed_place);
    if (place == 0) return std::nullopt;
    auto owner = owner_name::parse(row.text(column::handed_owner));
    return handover(place, row.number(column::handed_attachment),
                    lease.as_lock(resource, std::move(*owner), row.number(column::fencing_token)));
}

std::optional<queue_outcome> read(const stand_command& command, std::string_view verdict, const lease_columns& lease,
                                  const result_row& row) {
    if (verdict == "granted") {
        auto grant = grant_of(command.ask(), lease, row);
        if (!grant) return std::nullopt;
        return stand_outcome{std::move(*grant), wakes_of(row)};
    }
    if (verdict == "standing") {
        place own(command.resource(), row.number(column::place), row.number(column::attachment));
        return stand_outcome{queue_standing(std::move(own), position_of(row), ends_in(lease)), wakes_of(row)};
    }
    if (verdict == "refused") return stand_outcome{queue_refusal(retry_after(lease)), wakes_of(row)};
    if (verdict == "full") return stand_outcome{queue_full(), wakes_of(row)};
    unknown_verdict();
}

std::optional<queue_outcome> read(const claim_command& command, std::string_view verdict, const lease_columns& lease,
                                  const result_row& row) {
    if (verdict == "granted") {
        auto grant = grant_of(command.ask(), lease, row);
        if (!grant) return std::nullopt;
        return claim_outcome(std::move(*grant));
    }
    if (verdict == "not_offered") return claim_outcome(not_offered(ends_in(lease)));
    if (verdict == "kept") return claim_outcome(not_offered(ends_in(lease), true));
    if (verdict == "gone") return claim_outcome(place_gone());
    unknown_verdict();
}

std::optional<queue_outcome> read(const withdraw_command&, std::string_view verdict, const lease_columns& lease,
                                  const result_row& row) {
    if (verdict == "kept") return withdraw_outcome{place_kept(position_of(row), retry_after(lease)), wakes_of(row)};
    if (verdict == "gone") return withdraw_outcome{place_gone(), wakes_of(row)};
    unknown_verdict();
}

std::optional<queue_outcome> read(const leave_command&, std::string_view verdict, const lease_columns&,
                                  const result_row& row) {
    if (verdict == "left") return leave_outcome{leave_result::left, wakes_of(row)};
    if (verdict == "not_found") return leave_outcome{leave_result::not_found, wakes_of(row)};
    unknown_verdict();
}

std::optional<queue_outcome> read(const hand_over_command& command, std::string_view verdict,
                                  const lease_columns& lease, const result_row& row) {
    if (verdict == "held")
        return hand_over_outcome{ends_in(lease), wakes_of(row), handed_of(command.resource(), lease, row)};
    if (verdict == "free") return hand_over_outcome{std::nullopt, wakes_of(row), std::nullopt};
    unknown_verdict();
}

release_result release_result_of(std::string_view verdict) {
    if (verdict == "released") return release_result::released;
    if (verdict == "not_found") return release_result::not_found;
    if (verdict == "forbidden") return release_result::forbidden;
    unknown_verdict();
}

std::optional<queue_outcome> read(const queue_release_command& command, std::string_view verdict,
                                  const lease_columns& lease, const result_row& row) {
    return queue_release_outcome{release_result_of(verdict), wakes_of(row), handed_of(command.resource(), lease, row)};
}

/// Reads a whole number and removes it from `text`.
std::optional<std::int64_t> take_number(std::string_view& text) {
    std::int64_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
}

std::optional<wake> parse_wake(std::string_view text) {
    const auto node = take_number(text);
    if (!node || !text.starts_with(' ')) return std::nullopt;
    text.remove_prefix(1);
    const auto place = take_number(text);
    if (!place || !text.empty()) return std::nullopt;
    return wake{static_cast<node_id>(*node), *place};
}

}  // namespace

void queue_parameters::add(const queue_command& command, std::int64_t not_after) {
    const fields each = std::visit([](const auto& one) { return fields_of(one); }, command);
    kinds_.add(each.kind);
    resources_.add(std::visit([](const auto& one) { return std::string_view(one.resource().text()); }, command));
    owners_.add(each.owner);
    ttls_.add(each.ttl_seconds);
    keys_.add(each.key);
    nodes_.add(each.node);
    places_.add(each.place);
    attachments_.add(each.attachment);
    tokens_.add(each.token);
    limits_.add(not_after);
}

std::vector<std::string> queue_parameters::all(std::size_t places_max, bool skip_locked,
                                               const std::string& lock_wait) const {
    return {kinds_.str(),
            resources_.str(),
            owners_.str(),
            ttls_.str(),
            keys_.str(),
            nodes_.str(),
            places_.str(),
            attachments_.str(),
            tokens_.str(),
            limits_.str(),
            std::to_string(places_max),
            skip_locked ? "true" : "false",
            lock_wait};
}

std::optional<queue_outcome> queue_outcome_of(const queue_command& command, const result_row& row) {
    const lease_columns lease(row);
    const auto verdict = row.text(column::verdict);
    return std::visit([&](const auto& each) { return read(each, verdict, lease, row); }, command);
}

std::vector<wake> parse_wakes(std::string_view text) {
    std::vector<wake> wakes;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(';'), text.size());
        if (const auto one = parse_wake(text.substr(0, end))) wakes.push_back(*one);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return wakes;
}

std::vector<std::string> wake_payloads(const std::vector<wake>& wakes) {
    std::vector<std::string> payloads;
    for (const wake& each : wakes) {
        const std::string one =
            std::to_string(static_cast<std::int64_t>(each.node)) + ' ' + std::to_string(each.place_number) + ';';
        if (payloads.empty() || payloads.back().size() + one.size() > payload_bytes_max) payloads.emplace_back();
        payloads.back() += one;
    }
    return payloads;
}

std::string wake_channel(std::string_view schema) {
    std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const char each : schema)
        hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3;
    constexpr std::string_view digits = "0123456789abcdef";
    std::string channel = "holdfast_";
    for (int shift = 60; shift >= 0; shift -= 4)
        channel += digits[(hash >> shift) & 15];
    return channel;
}

}  // namespace holdfast::pg
