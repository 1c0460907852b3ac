#ifndef HOLDFAST_TESTS_SUPPORT_HTTP_CLIENT_HPP
#define HOLDFAST_TESTS_SUPPORT_HTTP_CLIENT_HPP

// A raw HTTP client for tests: sends any bytes, well formed or not, and reads the answers one by one. Blocking, on one
// descriptor (TCP or one end of a socketpair); every wait is bounded.

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::test {

/// The peer did not do in time, or at all, what the test waited for: nothing came, the connection closed in the middle
/// of an answer, or what came is no HTTP answer.
class http_client_error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

struct http_answer {
    std::string version;  ///< "HTTP/1.1"
    int status = 0;
    std::string reason;
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;

    /// How many headers have that name (in any case).
    std::size_t count(std::string_view name) const;
    /// The value of the first header of that name, "" when there is none.
    std::string header(std::string_view name) const;
    bool has(std::string_view name) const { return count(name) != 0; }
};

class http_client {
public:
    using milliseconds = std::chrono::milliseconds;
    using header_list = std::vector<std::pair<std::string, std::string>>;

    /// Connects to an IPv4 address, within `patience`. Throws http_client_error when refused or late.
    static http_client connect(std::string_view address, std::uint16_t port,
                               milliseconds patience = milliseconds(5000));
    /// Takes over a connected stream descriptor and closes it at the end.
    explicit http_client(int descriptor, milliseconds patience = milliseconds(5000));
    http_client(http_client&& other) noexcept;
    http_client& operator=(http_client&& other) noexcept;
    ~http_client();

    /// How long each single send or read may take before it throws.
    void patience(milliseconds patience) { patience_ = patience; }

    /// Sends all bytes, without reading meanwhile. False when the peer has closed or reset; what it answered before may
    /// still be read.
    bool send(std::string_view bytes);
    /// As send, but in pieces of `piece_bytes`, with a pause between them.
    bool send_slowly(std::string_view bytes, std::size_t piece_bytes, milliseconds pause);

    /// Reads one final answer and leaves the bytes behind it for the next call. Interim answers (1xx) are counted, see
    /// interim(), and skipped. `method` is the request's: an answer to HEAD has no body.
    http_answer read(std::string_view method = "GET");
    /// Reads one answer of any kind; an interim one is returned as such.
    http_answer read_any(std::string_view method = "GET");
    /// How many interim answers read() has skipped so far.
    std::size_t interim() const { return interim_; }

    /// Sends a well-formed request and reads its answer. Adds Host, and Content-Length and Content-Type for a body,
    /// unless `headers` name them.
    http_answer request(std::string_view method, std::string_view target, std::string_view body = {},
                        const header_list& headers = {});
    /// The bytes that request() would send.
    static std::string format(std::string_view method, std::string_view target, std::string_view body = {},
                              const header_list& headers = {});

    /// True when the peer closes (or resets) within `patience`, without having sent another byte.
    bool closed_within(milliseconds patience);
    /// True when nothing arrives and the connection stays open for that long.
    bool silent_for(milliseconds time);

    /// Half-close: nothing more will be sent; answers can still be read.
    void shutdown_send();
    /// Closes with a reset instead of an orderly end (TCP).
    void reset();
    void close();

    int descriptor() const { return descriptor_; }

private:
    bool fill(std::chrono::steady_clock::time_point until);
    std::string take_through(std::string_view mark, std::chrono::steady_clock::time_point until);
    std::string take(std::size_t bytes, std::chrono::steady_clock::time_point until);
    void read_body(http_answer& answer, std::string_view method, std::chrono::steady_clock::time_point until);

    int descriptor_ = -1;
    milliseconds patience_{5000};
    std::string unread_;
    std::size_t interim_ = 0;
};

}  // namespace holdfast::test

#endif
