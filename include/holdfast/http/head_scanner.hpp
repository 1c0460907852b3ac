#ifndef HOLDFAST_HTTP_HEAD_SCANNER_HPP
#define HOLDFAST_HTTP_HEAD_SCANNER_HPP

#include "holdfast/http/problem.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace holdfast::http {

/// Finds the end of a request's head and refuses, byte by byte, what a parser might forgive and two parsers might read
/// differently: bare LF or CR, control characters, folded lines, white space before the colon, more than one
/// Content-Length or one that is not just digits, any Transfer-Encoding but a single `chunked`, both of them together.
/// Also where the limits on target and header block are held. Pure; knows no socket.
class head_scanner {
public:
    enum class verdict { need_more, complete, refused };

    /// Looks at all bytes received of this request so far, which begin with the request line. Each call continues where
    /// the last one stopped, so feeding byte by byte costs no more than feeding at once.
    verdict scan(std::string_view received);

    /// Whether the request line has been read and found well formed.
    bool has_request_line() const noexcept { return fields_start_ != 0; }

    /// Bytes of the head with its empty line. Only when complete.
    std::size_t head_bytes() const noexcept { return line_start_; }

    /// Why it was refused. Only when refused: bad_request, uri_too_long or headers_too_large.
    problem refusal() const noexcept { return refusal_; }
    /// One sentence about it.
    std::string_view detail() const noexcept { return detail_; }

private:
    enum class line_kind { request_line, field, empty };

    verdict refuse(problem reason, std::string_view detail);
    bool scan_line(std::string_view line);
    bool scan_request_line(std::string_view line);
    bool scan_field(std::string_view line);
    bool scan_framing(std::string_view name, std::string_view value);
    bool check_limits(std::string_view received);
    bool check_framing();

    std::size_t line_start_ = 0;
    std::size_t searched_ = 0;
    std::size_t fields_start_ = 0;  ///< 0 until the request line is complete.
    std::size_t content_lengths_ = 0;
    std::size_t transfer_encodings_ = 0;
    bool http_1_0_ = false;
    problem refusal_ = problem::bad_request;
    std::string_view detail_;
};

}  // namespace holdfast::http

#endif
