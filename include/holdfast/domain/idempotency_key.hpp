#ifndef HOLDFAST_DOMAIN_IDEMPOTENCY_KEY_HPP
#define HOLDFAST_DOMAIN_IDEMPOTENCY_KEY_HPP

#include "holdfast/domain/field_fault.hpp"

#include <string>
#include <string_view>

namespace holdfast::domain {

/// Names one acquire, so that a repetition gets the same grant: 1 to 255 visible ASCII characters (0x21 to 0x7E).
class idempotency_key {
public:
    /// Refuses with `invalid` (empty, other characters) or `too_long`.
    static validated<idempotency_key> parse(std::string_view text);

    const std::string& text() const noexcept { return text_; }

    friend bool operator==(const idempotency_key&, const idempotency_key&) = default;

private:
    explicit idempotency_key(std::string text) noexcept : text_(std::move(text)) {}

    std::string text_;
};

}  // namespace holdfast::domain

#endif
