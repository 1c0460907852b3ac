#include "holdfast/domain/text.hpp"

#include <boost/nowide/utf/utf.hpp>

namespace holdfast::domain {

bool is_plain_utf8(std::string_view text) noexcept {
    namespace utf = boost::nowide::utf;
    for (auto next = text.begin(); next != text.end();) {
        const utf::code_point point = utf::utf_traits<char>::decode(next, text.end());
        if (point == utf::illegal || point == utf::incomplete) return false;
        if (point < 0x20 || point == 0x7f) return false;
    }
    return true;
}

std::string_view trim_ascii_white_space(std::string_view text) noexcept {
    constexpr std::string_view white_space = " \t\n\v\f\r";
    const auto first = text.find_first_not_of(white_space);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(white_space) - first + 1);
}

}  // namespace holdfast::domain
