#ifndef HOLDFAST_HTTP_REQUEST_HPP
#define HOLDFAST_HTTP_REQUEST_HPP

#include "holdfast/http/reply.hpp"
#include "holdfast/http/router.hpp"
#include "holdfast/service/asker.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace holdfast::http {

/// A header field that may stand in a request any number of times.
struct header_value {
    std::size_t count = 0;
    std::string_view first;
};

/// Who waits for the answer to a request. When it stands in line (service::asker), the connection is watched: until the
/// handler has answered, its coroutine is cancelled (total) when the client closes, half-closes or resets; and the body
/// that the request shows is gone. Requests that do not stand in line do not pay for that.
class requester : public service::asker {
public:
    /// The request may take so much longer than others.
    virtual void may_wait(std::chrono::seconds patience) = 0;

protected:
    ~requester() = default;
};

/// A request as checks and handlers see it: no sockets, no parser. The views belong to the session and stay valid until
/// the answer is written.
struct request {
    std::string_view method;
    std::string_view target;
    bool http_1_0 = false;
    route_match route;

    header_value host;
    header_value content_type;
    header_value idempotency_key;
    header_value request_id;
    header_value traceparent;
    std::size_t expects_other = 0;  ///< How many Expect headers ask for anything but 100-continue.
    bool expects_continue = false;  ///< An Expect asks for 100-continue.
    bool has_body = false;          ///< Announced by a Content-Length above 0 or by chunked coding.
    std::optional<std::uint64_t> content_length;

    std::string_view body;  ///< Empty until it was read.

    http::requester* requester = nullptr;  ///< There when a handler is asked.
};

/// Everything that can be said before the body is read, in the contract's order: path and method (404, 405), headers
/// (400, 415, 417), size (413). Nothing when the request may go on; also the answer to OPTIONS, which needs no handler.
std::optional<reply> answer_from_head(const request& request);

/// True for `application/json`, alone or with the parameter charset=utf-8; other parameters do not matter.
bool is_json_media_type(std::string_view content_type);

/// True for 1 to 128 visible ASCII characters: an X-Request-Id that is taken over.
bool is_request_id(std::string_view text);

}  // namespace holdfast::http

#endif
