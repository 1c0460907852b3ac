#include "holdfast/domain/idempotency_key.hpp"
#include "holdfast/domain/limits.hpp"
#include "holdfast/domain/owner_name.hpp"
#include "holdfast/domain/resource_name.hpp"
#include "holdfast/domain/text.hpp"

#include <algorithm>

namespace holdfast::domain {

validated<resource_name> resource_name::parse(std::string text) {
    if (text.size() > limits::resource_bytes_max) return field_fault::too_long;
    if (text.empty() || !is_plain_utf8(text)) return field_fault::invalid;
    return resource_name(std::move(text));
}

validated<owner_name> owner_name::parse(std::string_view text) {
    text = trim_ascii_white_space(text);
    if (text.size() > limits::owner_bytes_max) return field_fault::too_long;
    if (text.empty() || !is_plain_utf8(text)) return field_fault::invalid;
    return owner_name(std::string(text));
}

validated<idempotency_key> idempotency_key::parse(std::string_view text) {
    if (text.size() > limits::idempotency_key_bytes_max) return field_fault::too_long;
    const auto is_visible = [](char c) { return c >= 0x21 && c <= 0x7e; };
    if (text.empty() || !std::all_of(text.begin(), text.end(), is_visible)) return field_fault::invalid;
    return idempotency_key(std::string(text));
}

}  // namespace holdfast::domain
