#ifndef HOLDFAST_HTTP_LIMITS_HPP
#define HOLDFAST_HTTP_LIMITS_HPP

// Every bound of the HTTP layer that is not a setting.

#include <chrono>
#include <cstddef>

namespace holdfast::http::limits {

/// Longest request target; longer is 414.
inline constexpr std::size_t target_bytes_max = 8 * 1024;
/// Longest method that is read at all; the methods we know are far shorter.
inline constexpr std::size_t method_bytes_max = 64;
/// All header lines with their line ends, without the request line and the empty line; more is 431.
inline constexpr std::size_t header_bytes_max = 16 * 1024;
/// Largest request body, before any decoding of its text; more is 413.
inline constexpr std::size_t body_bytes_max = 16 * 1024;
/// A text of body_bytes_max cannot close more brackets than this, so deeper nesting is never a whole JSON text. The
/// parser recurses: this bound also keeps its stack below 1 MiB (5 MiB under sanitizers).
inline constexpr std::size_t json_depth_max = body_bytes_max / 2;

/// What is read from the socket at once, and what may be kept unread: one head of the largest size, and a piece more.
inline constexpr std::size_t read_piece_bytes = 4 * 1024;
inline constexpr std::size_t read_buffer_bytes_max = 32 * 1024;
/// So many workspaces without a connection are kept, unless their buffer has grown beyond this.
inline constexpr std::size_t spare_workspaces_max = 256;
inline constexpr std::size_t spare_buffer_bytes_max = 8 * 1024;
static_assert(method_bytes_max + target_bytes_max + header_bytes_max + 64 + read_piece_bytes <= read_buffer_bytes_max);

/// Entries in the `errors` of one 422; the detail says how many more there are.
inline constexpr std::size_t field_errors_listed_max = 64;
/// Bytes of an unknown member's name that an error repeats.
inline constexpr std::size_t field_name_bytes_max = 64;

inline constexpr std::size_t request_id_bytes_max = 128;
/// What the log shows of texts that the client chose.
inline constexpr std::size_t logged_method_bytes_max = 32;
inline constexpr std::size_t logged_path_bytes_max = 512;
inline constexpr std::size_t logged_traceparent_bytes_max = 128;

/// How often a client is looked at that has filled the buffer behind a request that waits.
inline constexpr std::chrono::milliseconds full_buffer_watch_interval{250};
/// What may lie unread in the kernel behind that buffer, which gets room for twice as much. Beyond that TCP would close
/// the window, and the end of the connection could not be seen any more: such a client is taken for gone.
inline constexpr std::size_t unread_bytes_max = 96 * 1024;

/// Before a connection is closed that the client may still be sending on, what it sends is read and thrown away, so
/// that no reset overtakes the answer: for so long in all, for so long without a byte, for so many bytes.
inline constexpr std::chrono::milliseconds linger_time_max{5'000};
inline constexpr std::chrono::milliseconds linger_silence_max{1'000};
inline constexpr std::size_t linger_bytes_max = 32 * 1024 * 1024;

/// Connections above connections_max that are told so at the same time; further ones are closed without a word.
inline constexpr std::size_t refusals_max = 64;

/// How long a draining node waits for a request that may be on its way on an idle connection.
inline constexpr std::chrono::milliseconds drain_grace{1'000};
/// How long connections that were cut off may take to end.
inline constexpr std::chrono::milliseconds cut_off_time_max{1'000};

/// Pause after accept failed (no descriptors left, connection already gone), and between two log lines about it.
inline constexpr std::chrono::milliseconds accept_backoff{20};
inline constexpr std::chrono::milliseconds accept_log_interval{1'000};

}  // namespace holdfast::http::limits

#endif
