#include "holdfast/http/command_reader.hpp"

#include "holdfast/domain/limits.hpp"
#include "holdfast/http/limits.hpp"

#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <vector>

namespace holdfast::http {
namespace {

namespace json = boost::json;
using boost::system::error_code;
using domain::field_fault;

constexpr std::array acquire_rules{member_rule{member::owner, true}, member_rule{member::ttl_seconds, true},
                                   member_rule{member::wait_seconds, false}};
constexpr std::array renew_rules{member_rule{member::owner, true}, member_rule{member::ttl_seconds, true},
                                 member_rule{member::fencing_token, false}};
constexpr std::array release_rules{member_rule{member::owner, true}, member_rule{member::fencing_token, false}};
constexpr std::array leave_rules{member_rule{member::owner, true}};

/// What the text says about one member, before anyone judges it.
struct raw_member {
    enum class kind { absent, string, number, other };

    kind found = kind::absent;
    bool repeated = false;
    std::string text;  ///< The string's characters or the number's literal.
};

/// Takes the parser's events. Only members of the outermost object matter; what is nested deeper must just be JSON.
class event_reader {
public:
    static constexpr std::size_t max_object_size = std::numeric_limits<std::size_t>::max();
    static constexpr std::size_t max_array_size = std::numeric_limits<std::size_t>::max();
    static constexpr std::size_t max_key_size = std::numeric_limits<std::size_t>::max();
    static constexpr std::size_t max_string_size = std::numeric_limits<std::size_t>::max();

    explicit event_reader(std::span<const member_rule> rules) : rules_(rules) {}

    bool is_object() const { return is_object_; }
    const raw_member& operator[](member which) const { return members_[static_cast<std::size_t>(which)]; }
    const std::vector<std::string>& unknown() const { return unknown_; }
    std::size_t unknown_unlisted() const { return unknown_unlisted_; }

    bool on_document_begin(error_code&) { return true; }
    bool on_document_end(error_code&) { return true; }

    bool on_object_begin(error_code&) {
        if (depth_ == 0) is_object_ = true;
        take(raw_member::kind::other);
        ++depth_;
        return true;
    }
    bool on_object_end(std::size_t, error_code&) { return leave(); }
    bool on_array_begin(error_code&) {
        take(raw_member::kind::other);
        ++depth_;
        return true;
    }
    bool on_array_end(std::size_t, error_code&) { return leave(); }

    bool on_key_part(json::string_view part, std::size_t, error_code&) {
        if (at_member()) text_.append(part.data(), part.size());
        return true;
    }
    bool on_key(json::string_view part, std::size_t, error_code&) {
        if (!at_member()) return true;
        text_.append(part.data(), part.size());
        begin_member();
        text_.clear();
        return true;
    }
    bool on_string_part(json::string_view part, std::size_t, error_code&) { return collect(part); }
    bool on_string(json::string_view part, std::size_t, error_code&) {
        collect(part);
        return take(raw_member::kind::string);
    }
    bool on_number_part(json::string_view part, error_code&) { return collect(part); }
    bool on_int64(std::int64_t, json::string_view part, error_code&) { return take_number(part); }
    bool on_uint64(std::uint64_t, json::string_view part, error_code&) { return take_number(part); }
    bool on_double(double, json::string_view part, error_code&) { return take_number(part); }
    bool on_bool(bool, error_code&) { return take(raw_member::kind::other); }
    bool on_null(error_code&) { return take(raw_member::kind::other); }
    bool on_comment_part(json::string_view, error_code&) { return true; }
    bool on_comment(json::string_view, error_code&) { return true; }

private:
    bool at_member() const { return is_object_ && depth_ == 1; }

    bool leave() {
        --depth_;
        return true;
    }

    bool collect(json::string_view part) {
        if (at_member()) text_.append(part.data(), part.size());
        return true;
    }

    bool take_number(json::string_view part) {
        collect(part);
        return take(raw_member::kind::number);
    }

    /// A value is there (or begins): it belongs to the member that was named last.
    bool take(raw_member::kind kind) {
        if (!at_member()) return true;
        if (current_) {
            current_->found = kind;
            current_->text = std::move(text_);
        }
        text_.clear();
        return true;
    }

    void begin_member() {
        current_ = nullptr;
        for (const member_rule& rule : rules_) {
            if (name_of(rule.which) != text_) continue;
            current_ = &members_[static_cast<std::size_t>(rule.which)];
            current_->repeated = current_->found != raw_member::kind::absent;
            return;
        }
        if (std::find(unknown_.begin(), unknown_.end(), text_) != unknown_.end()) return;
        // Names beyond those that can be listed are only counted, so that the search above stays short.
        if (unknown_.size() < limits::field_errors_listed_max)
            unknown_.push_back(text_);
        else
            ++unknown_unlisted_;
    }

    std::span<const member_rule> rules_;
    std::array<raw_member, member_kinds> members_;
    raw_member* current_ = nullptr;
    std::vector<std::string> unknown_;
    std::size_t unknown_unlisted_ = 0;
    std::string text_;
    std::size_t depth_ = 0;
    bool is_object_ = false;
};

/// A copy in which no exponent has more than three digits. Whether the text is JSON, and which numbers are integer
/// literals, stays as it was: Boost.JSON calls exponents beyond an int a fault of the text, which they are not.
std::string with_short_exponents(std::string_view text) {
    std::string copy;
    copy.reserve(text.size());
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        copy += c;
        if (in_string && c == '\\' && i + 1 < text.size()) copy += text[++i];
        if (c == '"') in_string = !in_string;
        if (in_string || (c != 'e' && c != 'E')) continue;
        std::size_t next = i + 1;
        if (next < text.size() && (text[next] == '+' || text[next] == '-')) copy += text[next++];
        const auto digits_end = std::min(text.find_first_not_of("0123456789", next), text.size());
        copy += text.substr(next, std::min<std::size_t>(digits_end - next, 3));
        i = digits_end - 1;
    }
    return copy;
}

using event_parser = json::basic_parser<event_reader>;

error_code parse_once(std::string_view text, event_parser& parser) {
    error_code fault;
    const std::size_t used = parser.write_some(false, text.data(), text.size(), fault);
    if (!fault && used < text.size()) fault = json::make_error_code(json::error::extra_data);
    return fault;
}

json::parse_options strict_options() {
    json::parse_options options;
    options.max_depth = limits::json_depth_max;
    return options;
}

/// Integer literals of any size; nothing for `30.0` and `3e1`. What does not fit is pinned to the end of the range.
std::optional<std::int64_t> integer_of(std::string_view literal) {
    if (literal.find_first_of(".eE") != std::string_view::npos) return std::nullopt;
    std::int64_t value = 0;
    const auto [end, fault] = std::from_chars(literal.data(), literal.data() + literal.size(), value);
    if (fault == std::errc::result_out_of_range) {
        using limits_of = std::numeric_limits<std::int64_t>;
        return literal.starts_with('-') ? limits_of::min() : limits_of::max();
    }
    return value;
}

std::string message_for(member which, field_fault fault, std::int64_t ttl_seconds_max) {
    if (fault == field_fault::required) return "is required";
    if (fault == field_fault::repeated) return "stands more than once in the body";
    switch (which) {
        case member::owner:
            return fault == field_fault::too_long
                       ? "must have at most " + std::to_string(domain::limits::owner_bytes_max) + " bytes"
                       : "must be a string of 1 to 255 bytes that is not blank and has no control characters";
        case member::ttl_seconds:
            return "must be an integer from 1 to " + std::to_string(ttl_seconds_max);
        case member::fencing_token:
            return "must be an integer from 0 to " + std::to_string(domain::limits::fencing_token_max);
        case member::wait_seconds:
            return "must be an integer from 0 to " + std::to_string(domain::limits::wait_seconds_max);
    }
    return "is not valid";
}

std::optional<field_fault> judge_owner(const raw_member& raw, command_members& members) {
    if (raw.found != raw_member::kind::string) return field_fault::invalid;
    auto owner = domain::owner_name::parse(raw.text);
    if (!owner) return owner.error();
    members.owner = std::move(*owner);
    return std::nullopt;
}

std::optional<field_fault> judge_number(member which, std::int64_t number, std::int64_t ttl_seconds_max,
                                        command_members& members) {
    switch (which) {
        case member::owner:
            break;
        case member::ttl_seconds: {
            const auto ttl = domain::ttl::parse(number, ttl_seconds_max);
            if (!ttl) return ttl.error();
            members.ttl = *ttl;
            break;
        }
        case member::fencing_token: {
            const auto token = domain::fencing_token::parse(number);
            if (!token) return token.error();
            members.fencing_token = *token;
            break;
        }
        case member::wait_seconds:
            if (number < 0 || number > domain::limits::wait_seconds_max) return field_fault::out_of_range;
            members.wait = std::chrono::seconds(number);
            break;
    }
    return std::nullopt;
}

/// Turns one member into its domain value, or says what is wrong with it.
std::optional<field_fault> judge(member which, const raw_member& raw, std::int64_t ttl_seconds_max,
                                 command_members& members) {
    if (which == member::owner) return judge_owner(raw, members);
    const auto number = raw.found == raw_member::kind::number ? integer_of(raw.text) : std::nullopt;
    if (!number) return field_fault::invalid;
    return judge_number(which, *number, ttl_seconds_max, members);
}

/// A name as an error can show it: not longer than the limit, and cut between two characters.
std::string shown_name(const std::string& name) {
    if (name.size() <= limits::field_name_bytes_max) return name;
    std::size_t end = limits::field_name_bytes_max;
    while ((static_cast<unsigned char>(name[end]) & 0xc0) == 0x80)
        --end;
    return name.substr(0, end) + "…";
}

void judge_all(const event_reader& events, std::span<const member_rule> rules, std::int64_t ttl_seconds_max,
               command_members& members, field_errors& errors) {
    for (const member_rule& rule : rules) {
        const raw_member& raw = events[rule.which];
        std::optional<field_fault> fault;
        if (raw.repeated)
            fault = field_fault::repeated;
        else if (raw.found != raw_member::kind::absent)
            fault = judge(rule.which, raw, ttl_seconds_max, members);
        else if (rule.required)
            fault = field_fault::required;
        if (fault) errors.add(name_of(rule.which), *fault, message_for(rule.which, *fault, ttl_seconds_max));
    }
    for (const std::string& name : events.unknown())
        errors.add(shown_name(name), field_fault::unknown, "is not a member of this request");
    for (std::size_t i = 0; i < events.unknown_unlisted(); ++i)
        errors.add({}, field_fault::unknown, {});
}

}  // namespace

std::string_view name_of(member which) noexcept {
    switch (which) {
        case member::owner:
            return "owner";
        case member::ttl_seconds:
            return "ttl_seconds";
        case member::fencing_token:
            return "fencing_token";
        case member::wait_seconds:
            return "wait_seconds";
    }
    return {};
}

std::span<const member_rule> members_of(operation meant) noexcept {
    switch (meant) {
        case operation::acquire:
            return acquire_rules;
        case operation::renew:
            return renew_rules;
        case operation::release:
            return release_rules;
        case operation::leave:
            return leave_rules;
        case operation::look:
        case operation::health:
        case operation::readiness:
        case operation::openapi:
        case operation::problem_type:
        case operation::metrics:
            return {};
    }
    return {};
}

bool read_command(std::string_view body, std::span<const member_rule> rules, std::int64_t ttl_seconds_max,
                  command_members& members, field_errors& errors) {
    const std::string_view text = body.empty() ? "{}" : body;
    event_parser parser(strict_options(), rules);
    event_parser second_parser(strict_options(), rules);
    const event_reader* events = &parser.handler();
    error_code fault = parse_once(text, parser);
    if (fault == json::error::exponent_overflow) {
        fault = parse_once(with_short_exponents(text), second_parser);
        events = &second_parser.handler();
    }
    if (fault) return false;
    if (events->is_object())
        judge_all(*events, rules, ttl_seconds_max, members, errors);
    else
        errors.add("body", field_fault::invalid, "must be a JSON object");
    return true;
}

}  // namespace holdfast::http
