#ifndef HOLDFAST_BENCH_RESP_HPP
#define HOLDFAST_BENCH_RESP_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::rivals {

// The part of Redis's protocol (RESP 2) that SET, EVALSHA and SCRIPT LOAD need: commands out, replies without arrays
// in. By hand, since it is so little, and the asynchronous side of hiredis would bring a library and an event adapter
// for it, whose cost would then be measured with Redis.

/// One reply, `size` bytes long.
struct resp_reply {
    char type = 0;          ///< `+` status, `-` error, `:` integer, `$` text; `_` for the text that is none
    std::string_view text;  ///< A view into what was read.
    std::size_t size = 0;
};

/// The reply at the start of `read`; nothing while it is not whole. One of type 0 is no reply that we know.
std::optional<resp_reply> parse_reply(std::string_view read);

/// Appends one argument of a command; the command begins with `*COUNT\r\n`.
void append_argument(std::string& command, std::string_view argument);

}  // namespace holdfast::rivals

#endif
