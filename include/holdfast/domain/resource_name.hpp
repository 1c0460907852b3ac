#ifndef HOLDFAST_DOMAIN_RESOURCE_NAME_HPP
#define HOLDFAST_DOMAIN_RESOURCE_NAME_HPP

#include "holdfast/domain/field_fault.hpp"

#include <compare>
#include <string>

namespace holdfast::domain {

/// The name that is locked: 1 to 255 bytes of UTF-8 without control characters, compared byte for byte.
class resource_name {
public:
    /// Takes the decoded path segment. Refuses with `invalid` (empty, not UTF-8, control character) or `too_long`.
    static validated<resource_name> parse(std::string text);

    const std::string& text() const noexcept { return text_; }

    friend bool operator==(const resource_name&, const resource_name&) = default;
    friend std::strong_ordering operator<=>(const resource_name&, const resource_name&) = default;

private:
    explicit resource_name(std::string text) noexcept : text_(std::move(text)) {}

    std::string text_;
};

}  // namespace holdfast::domain

#endif
