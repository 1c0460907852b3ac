#ifndef HOLDFAST_HTTP_COMMAND_READER_HPP
#define HOLDFAST_HTTP_COMMAND_READER_HPP

// From the JSON body of a request to domain values (contract, section 3), straight from the parser's events, without a
// document in between.

#include "holdfast/domain/fencing_token.hpp"
#include "holdfast/domain/owner_name.hpp"
#include "holdfast/domain/ttl.hpp"
#include "holdfast/http/field_errors.hpp"
#include "holdfast/http/router.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace holdfast::http {

enum class member { owner, ttl_seconds, fencing_token, wait_seconds };

inline constexpr std::size_t member_kinds = 4;

std::string_view name_of(member which) noexcept;

struct member_rule {
    member which;
    bool required;
};

/// The members that the body of a request may have; empty for requests whose body is not looked at.
std::span<const member_rule> members_of(operation meant) noexcept;

struct command_members {
    std::optional<domain::owner_name> owner;
    std::optional<domain::ttl> ttl;
    std::optional<domain::fencing_token> fencing_token;
    std::optional<std::chrono::seconds> wait;  ///< 0 to limits::wait_seconds_max.
};

/// Reads `body` into `members` and adds every fault to `errors`; a required member without a fault is there afterwards.
/// An empty body counts as `{}`. False when the body is no JSON text; then nothing was added.
bool read_command(std::string_view body, std::span<const member_rule> rules, std::int64_t ttl_seconds_max,
                  command_members& members, field_errors& errors);

}  // namespace holdfast::http

#endif
