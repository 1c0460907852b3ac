#ifndef HOLDFAST_DOMAIN_TEXT_HPP
#define HOLDFAST_DOMAIN_TEXT_HPP

#include <string_view>

namespace holdfast::domain {

/// True when `text` is valid UTF-8 (RFC 3629: no overlong form, no surrogate, nothing above U+10FFFF) and holds no
/// control character (U+0000 to U+001F, U+007F).
bool is_plain_utf8(std::string_view text) noexcept;

/// `text` without the ASCII white space (space, \t, \n, \v, \f, \r) at both ends.
std::string_view trim_ascii_white_space(std::string_view text) noexcept;

}  // namespace holdfast::domain

#endif
