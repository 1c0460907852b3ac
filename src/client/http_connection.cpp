#include "holdfast/client/http_connection.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include <optional>
#include <utility>

namespace holdfast::client {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

/// Keeps the status and the body, lets the fields pass: no allocation once the body's memory has grown.
class answer_parser final : public http::basic_parser<false> {
public:
    explicit answer_parser(std::string& body) : body_(body) {
        body_.clear();
        eager(true);
        body_limit(1024 * 1024);
    }

    unsigned status() const { return status_; }

private:
    using text = boost::beast::string_view;

    void on_request_impl(http::verb, text, text, int, error_code&) override {}
    void on_response_impl(int code, text, int, error_code&) override { status_ = static_cast<unsigned>(code); }
    void on_field_impl(http::field, text, text, error_code&) override {}
    void on_header_impl(error_code&) override {}
    void on_body_init_impl(boost::optional<std::uint64_t> const&, error_code&) override {}
    std::size_t on_body_impl(text piece, error_code&) override {
        body_.append(piece.data(), piece.size());
        return piece.size();
    }
    void on_chunk_header_impl(std::uint64_t, text, error_code&) override {}
    std::size_t on_chunk_body_impl(std::uint64_t, text piece, error_code&) override {
        body_.append(piece.data(), piece.size());
        return piece.size();
    }
    void on_finish_impl(error_code&) override {}

    std::string& body_;
    unsigned status_ = 0;
};

}  // namespace

class http_connection::implementation {
public:
    implementation(const asio::any_io_executor& executor, const asio::ip::tcp::endpoint& server, std::string authority)
        : socket_(executor), server_(server), authority_(std::move(authority)) {}

    bool is_open() const noexcept { return is_open_; }

    asio::awaitable<error_code> open() {
        close();
        error_code ignored;
        socket_.open(server_.protocol(), ignored);  // a failure shows in connect
        begin();
        auto [fault] = co_await socket_.async_connect(server_, as_result);
        end(fault);
        if (!fault) socket_.set_option(asio::ip::tcp::no_delay(true), fault);
        if (!fault) socket_.non_blocking(true, fault);
        is_open_ = !fault;
        if (fault) close();
        co_return fault;
    }

    asio::awaitable<boost::system::result<answer>> exchange(std::string_view method, std::string_view target,
                                                            std::string_view body) {
        if (!is_open_) co_return asio::error::make_error_code(asio::error::not_connected);
        compose(method, target, body);
        begin();
        error_code fault = co_await transfer();
        end(fault);
        if (fault || !parser_->keep_alive()) close();
        if (fault) co_return fault;
        co_return answer{parser_->status(), body_};
    }

    void close_if_stuck(clock::time_point moment) {
        if (!began_at_ || *began_at_ >= moment) return;
        timed_out_ = true;
        error_code ignored;
        socket_.close(ignored);
    }

    bool was_closed_by_server() {
        if (!is_open_) return true;
        error_code fault;
        char byte;
        socket_.receive(asio::buffer(&byte, 1), asio::ip::tcp::socket::message_peek, fault);
        return fault != asio::error::would_block;
    }

    void close() noexcept {
        is_open_ = false;
        error_code ignored;
        socket_.close(ignored);
        buffer_.clear();
    }

private:
    void compose(std::string_view method, std::string_view target, std::string_view body) {
        outgoing_.clear();
        outgoing_.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: ").append(authority_);
        if (!body.empty())
            outgoing_.append("\r\nContent-Type: application/json\r\nContent-Length: ")
                .append(std::to_string(body.size()));
        outgoing_.append("\r\n\r\n").append(body);
    }

    asio::awaitable<error_code> transfer() {
        parser_.emplace(body_);
        // A request nearly always fits into the socket at once; then there is nothing to wait for, and no way through
        // the scheduler.
        error_code fault;
        const std::size_t sent = socket_.write_some(asio::buffer(outgoing_), fault);
        if (fault && fault != asio::error::would_block) co_return fault;
        if (sent < outgoing_.size()) {
            auto [write_fault, rest] = co_await asio::async_write(socket_, asio::buffer(outgoing_) + sent, as_result);
            if (write_fault) co_return write_fault;
        }
        fault = {};
        while (!parser_->is_done()) {
            auto [read_fault, got] = co_await socket_.async_read_some(buffer_.prepare(read_bytes), as_result);
            buffer_.commit(got);
            if (read_fault == asio::error::eof && parser_->got_some()) {
                parser_->put_eof(fault);
                if (fault) co_return fault;
                continue;
            }
            if (read_fault) co_return read_fault;
            buffer_.consume(parser_->put(buffer_.data(), fault));
            if (fault && fault != http::error::need_more) co_return fault;
        }
        if (buffer_.size() != 0) co_return asio::error::make_error_code(asio::error::message_size);  // unasked bytes
        co_return error_code();
    }

    void begin() {
        timed_out_ = false;
        began_at_ = clock::now();
    }

    void end(error_code& fault) {
        began_at_.reset();
        if (timed_out_) fault = asio::error::timed_out;
    }

    static constexpr std::size_t read_bytes = 4'096;

    asio::ip::tcp::socket socket_;
    asio::ip::tcp::endpoint server_;
    std::string authority_;
    std::string outgoing_;
    boost::beast::flat_buffer buffer_{1024 * 1024};
    std::string body_;
    std::optional<answer_parser> parser_;
    std::optional<clock::time_point> began_at_;
    bool timed_out_ = false;
    bool is_open_ = false;
};

http_connection::http_connection(asio::any_io_executor executor, asio::ip::tcp::endpoint server, std::string authority)
    : implementation_(std::make_unique<implementation>(executor, server, std::move(authority))) {}

http_connection::~http_connection() = default;

asio::awaitable<error_code> http_connection::open() {
    return implementation_->open();
}

bool http_connection::is_open() const noexcept {
    return implementation_->is_open();
}

asio::awaitable<boost::system::result<answer>> http_connection::exchange(std::string_view method,
                                                                         std::string_view target,
                                                                         std::string_view body) {
    return implementation_->exchange(method, target, body);
}

void http_connection::close_if_stuck(clock::time_point moment) {
    implementation_->close_if_stuck(moment);
}

bool http_connection::was_closed_by_server() {
    return implementation_->was_closed_by_server();
}

void http_connection::close() noexcept {
    implementation_->close();
}

}  // namespace holdfast::client
