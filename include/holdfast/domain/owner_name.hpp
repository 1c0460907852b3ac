#ifndef HOLDFAST_DOMAIN_OWNER_NAME_HPP
#define HOLDFAST_DOMAIN_OWNER_NAME_HPP

#include "holdfast/domain/field_fault.hpp"

#include <string>
#include <string_view>

namespace holdfast::domain {

/// Who holds or asks: 1 to 255 bytes of UTF-8 without control characters, compared byte for byte.
class owner_name {
public:
    /// Trims ASCII white space at both ends, then refuses with `invalid` (empty, not UTF-8, control character) or
    /// `too_long`.
    static validated<owner_name> parse(std::string_view text);

    const std::string& text() const noexcept { return text_; }

    friend bool operator==(const owner_name&, const owner_name&) = default;

private:
    explicit owner_name(std::string text) noexcept : text_(std::move(text)) {}

    std::string text_;
};

}  // namespace holdfast::domain

#endif
