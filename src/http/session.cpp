#include "holdfast/http/session.hpp"

#include "holdfast/http/head_scanner.hpp"
#include "holdfast/http/problem.hpp"
#include "holdfast/http/request.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>

#include <poll.h>

#include <algorithm>
#include <memory_resource>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace holdfast::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using namespace std::chrono_literals;
using boost::system::error_code;
using std::chrono::milliseconds;
using steady = std::chrono::steady_clock;

std::string_view text_of(const beast::flat_buffer& buffer) {
    return {static_cast<const char*>(buffer.cdata().data()), buffer.size()};
}

/// RFC 9112, 2.2: empty lines before a request line are forgiven.
void skip_empty_lines(beast::flat_buffer& buffer) {
    while (text_of(buffer).starts_with("\r\n"))
        buffer.consume(2);
}

bool has_bare_line_feed(std::string_view text) {
    for (auto at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
        if (at == 0 || text[at - 1] != '\r') return true;
    return false;
}

/// The path of a well-formed request line, as far as it is one; for answers that are given before the head is parsed.
std::string_view path_seen(const head_scanner& scanner, const beast::flat_buffer& buffer) {
    if (!scanner.has_request_line()) return {};
    const auto line = text_of(buffer);
    const auto begin = line.find(' ') + 1;
    if (line[begin] != '/') return {};
    return line.substr(begin, line.find_first_of(" ?", begin) - begin);
}

bool would_block(const error_code& fault) {
    return fault == asio::error::would_block || fault == asio::error::try_again;
}

std::string_view as_std(beast::string_view text) {
    return {text.data(), text.size()};
}

}  // namespace

/// One request and its answer: lives from the first byte of the one to the last byte of the other.
class exchange {
public:
    using parser_type = beast::http::request_parser<beast::http::string_body, std::pmr::polymorphic_allocator<char>>;

    exchange(unique_ids& ids, steady::time_point started, std::pmr::memory_resource& fields)
        : parser_(std::piecewise_construct, std::make_tuple(),
                  std::make_tuple(std::pmr::polymorphic_allocator<char>(&fields))),
          started_(started),
          ids_(ids) {
        parser_.header_limit(limits::read_buffer_bytes_max);
        // Checked when the headers have passed, which come first in the contract's order.
        parser_.body_limit(boost::none);
    }

    exchange(const exchange&) = delete;
    exchange& operator=(const exchange&) = delete;

    head_scanner scanner;
    /// Nothing until there is one. Here, and not handed from coroutine to coroutine: each would keep room for it.
    std::optional<reply> answer;

    /// Parses the head that the scanner found; false when Beast refuses it after all.
    bool parse_head(std::string_view head);
    /// From here on the parser counts the body.
    void limit_body() { parser_.body_limit(limits::body_bytes_max); }
    void take_body() { request_.body = parser_.get().body(); }
    /// The handler has read it, and what waits should be small.
    void drop_body() {
        request_.body = {};
        std::string().swap(parser_.get().body());
    }
    void ask_on_behalf_of(requester& client) { request_.requester = &client; }
    /// A request that asks to wait may take so much longer than others.
    void be_patient(std::chrono::seconds patience) { patience_ = patience; }
    std::chrono::seconds patience() const { return patience_; }

    parser_type& parser() { return parser_; }
    const http::request& request() const { return request_; }
    bool has_head() const { return has_head_; }
    bool is_head() const { return request_.method == "HEAD"; }
    bool wants_keep_alive() const { return has_head_ && parser_.keep_alive(); }
    steady::time_point started() const { return started_; }
    /// Chooses the request id: the client's X-Request-Id if it will do, else a new one.
    void name_it() {
        request_id_ = is_request_id(request_.request_id.first) ? std::string(request_.request_id.first) : ids_.make();
    }
    const std::string& request_id() const { return request_id_; }

private:
    void read_headers();
    void note_expectation(std::string_view expected);

    parser_type parser_;
    http::request request_;
    steady::time_point started_;
    unique_ids& ids_;
    std::string request_id_;
    std::chrono::seconds patience_{0};
    bool has_head_ = false;
};

bool exchange::parse_head(std::string_view head) {
    error_code fault;
    const std::size_t used = parser_.put(asio::buffer(head.data(), head.size()), fault);
    if (fault || used != head.size() || !parser_.is_header_done()) return false;
    const auto& message = parser_.get();
    request_.method = as_std(message.method_string());
    request_.target = as_std(message.target());
    request_.http_1_0 = message.version() == 10;
    request_.route = match_route(request_.method, request_.target);
    if (const auto length = parser_.content_length()) request_.content_length = *length;
    request_.has_body = parser_.chunked() || request_.content_length.value_or(0) > 0;
    read_headers();
    has_head_ = true;
    return true;
}

void exchange::read_headers() {
    const auto note = [](header_value& into, const auto& header) {
        if (into.count++ == 0) into.first = as_std(header.value());
    };
    for (const auto& header : parser_.get()) {
        if (header.name() == beast::http::field::host)
            note(request_.host, header);
        else if (header.name() == beast::http::field::content_type)
            note(request_.content_type, header);
        else if (header.name() == beast::http::field::expect)
            note_expectation(as_std(header.value()));
        else if (header.name() != beast::http::field::unknown)
            continue;
        else if (beast::iequals(header.name_string(), "Idempotency-Key"))
            note(request_.idempotency_key, header);
        else if (beast::iequals(header.name_string(), "X-Request-Id"))
            note(request_.request_id, header);
        else if (beast::iequals(header.name_string(), "traceparent"))
            note(request_.traceparent, header);
    }
}

void exchange::note_expectation(std::string_view expected) {
    if (!beast::iequals(beast::string_view(expected.data(), expected.size()), "100-continue"))
        ++request_.expects_other;
    else if (!request_.http_1_0)
        request_.expects_continue = request_.has_body;
}

session::session(std::shared_ptr<session_group> group, connection socket, bool refused)
    : group_(std::move(group)), socket_(std::move(socket)), timer_(socket_.get_executor()), refused_(refused) {
    group_->enlist(*this, refused_);
}

session::~session() {
    group_->delist(*this, refused_);
}

void session::start() {
    const auto self = shared_from_this();
    auto on_end = [self](std::exception_ptr failure) {
        self->disarm();
        self->timer_.cancel();
        error_code ignored;
        self->socket_.close(ignored);
        if (!failure || self->cut_off_) return;
        try {
            std::rethrow_exception(failure);
        } catch (const std::exception& error) {
            self->group_->journal().write(domain::log_level::error, "session_failed",
                                          {{"cause", std::string_view(error.what())}});
        }
    };
    asio::co_spawn(socket_.get_executor(), run(), asio::bind_cancellation_slot(cancel_.slot(), std::move(on_end)));
}

void session::hasten() {
    if (!idle_) return;
    const auto grace_end = steady::now() + limits::drain_grace;
    if (grace_end < deadline_) arm(grace_end);
}

void session::cut_off() {
    cut_off_ = true;
    error_code ignored;
    socket_.close(ignored);
    cancel_.emit(asio::cancellation_type::terminal);
}

// ---- Deadlines. One timer, started only when none is pending that looks early enough: a busy connection moves
// deadline_ with each request and touches the timer once in a while.

void session::arm(std::chrono::milliseconds from_now) {
    arm(steady::now() + from_now);
}

void session::arm(time_point deadline) {
    deadline_ = deadline;
    expired_ = false;
    if (timer_until_ > deadline_) start_timer();
}

void session::start_timer() {
    timer_until_ = deadline_;
    timer_.expires_at(timer_until_);
    timer_.async_wait([self = shared_from_this()](error_code aborted) {
        if (!aborted) self->on_timer();
    });
}

void session::on_timer() {
    timer_until_ = time_point::max();
    if (deadline_ == time_point::max() || !socket_.is_open()) return;
    if (steady::now() < deadline_) {
        start_timer();
        return;
    }
    if (attending_) {
        look_at_client();
        return;
    }
    expired_ = true;
    error_code ignored;
    socket_.cancel(ignored);
}

// ---- The connection's life.

boost::asio::awaitable<void> session::run() {
    error_code ignored;
    socket_.non_blocking(true, ignored);
    sequel end = sequel::drop;
    // Not one co_await over a conditional expression: g++ 12 destroys its operand twice.
    if (refused_)
        end = co_await refuse_connection();
    else
        end = co_await serve();
    switch (end) {
        case sequel::next_request:
        case sequel::drop:
            break;
        case sequel::linger:
            co_await linger();
            break;
        case sequel::reset:
            socket_.set_option(asio::socket_base::linger(true, 0), ignored);
            break;
    }
}

boost::asio::awaitable<session::sequel> session::serve() {
    idle_until_ = steady::now() + group_->settings().idle_timeout;
    while (co_await wait_for_request()) {
        const sequel next = co_await serve_burst();
        if (next != sequel::next_request) co_return next;
    }
    co_return sequel::drop;
}

/// While nothing is to be read: no buffer, no parser. False when the connection has ended or idled for too long.
boost::asio::awaitable<bool> session::wait_for_request() {
    idle_ = true;
    arm(group_->draining() ? steady::now() + limits::drain_grace : idle_until_);
    const io_result waited = co_await wait(connection::wait_read);
    idle_ = false;
    if (waited == io_result::done) co_return true;
    // The request that arrives with the end of the patience is still served.
    error_code fault;
    co_return waited == io_result::timed_out&& socket_.available(fault) > 0 && !fault;
}

/// Serves what has arrived, and what arrives meanwhile, until no byte is left over.
boost::asio::awaitable<session::sequel> session::serve_burst() {
    const workspace_lease workspace(group_->workspaces());
    do {
        const sequel next = co_await serve_request(*workspace, steady::now());
        if (next != sequel::next_request) co_return next;
    } while (workspace->buffer.size() > 0);
    co_return sequel::next_request;
}

boost::asio::awaitable<session::sequel> session::refuse_connection() {
    exchange nothing_read(group_->ids(), steady::now(), *std::pmr::get_default_resource());
    nothing_read.answer = problem_reply(
        problem::overloaded,
        "This node has as many connections as it may have. No request was read, so none had an effect.", {});
    co_return co_await answer_and_close(nothing_read);
}

boost::asio::awaitable<session::sequel> session::serve_request(workspace& workspace, time_point started) {
    beast::flat_buffer& buffer = workspace.buffer;
    std::pmr::monotonic_buffer_resource fields(workspace.fields.data(), workspace.fields.size());
    exchange exchange(group_->ids(), started, fields);
    arm(started + group_->settings().header_deadline);
    const head_result head = co_await read_head(exchange, buffer);
    if (head == head_result::nothing) co_return sequel::next_request;
    if (head == head_result::closed) co_return sequel::drop;
    exchange.answer = head_fault(head, exchange, buffer);
    if (exchange.answer) co_return co_await answer_and_close(exchange);
    buffer.consume(exchange.scanner.head_bytes());
    exchange.limit_body();
    exchange.answer = answer_from_head(exchange.request());
    sequel next = sequel::drop;
    if (exchange.answer)
        next = co_await answer_without_handler(exchange, buffer);
    else
        next = co_await answer_with_handler(exchange, buffer);
    // Only a request buys more patience; empty lines do not.
    idle_until_ = steady::now() + group_->settings().idle_timeout;
    co_return next;
}

/// What is wrong with a head; else it has been parsed.
std::optional<reply> session::head_fault(head_result head, exchange& exchange, const beast::flat_buffer& buffer) {
    const auto refuse = [&](problem why, std::string_view detail) {
        return problem_reply(why, detail, path_seen(exchange.scanner, buffer));
    };
    switch (head) {
        case head_result::nothing:
        case head_result::closed:
            break;
        case head_result::timed_out:
            return refuse(problem::request_timeout, "The header did not arrive whole in time.");
        case head_result::ended_early:
            return refuse(problem::bad_request, "The connection ended within the header.");
        case head_result::refused:
            return refuse(exchange.scanner.refusal(), exchange.scanner.detail());
        case head_result::complete:
            if (!exchange.parse_head(text_of(buffer).substr(0, exchange.scanner.head_bytes())))
                return refuse(problem::bad_request, "The header is malformed.");
            break;
    }
    return std::nullopt;
}

std::optional<reply> session::body_fault(body_result body, const exchange& exchange) {
    const auto path = exchange.request().route.path;
    switch (body) {
        case body_result::complete:
            break;
        case body_result::ended_early:
            return problem_reply(problem::bad_request, "The connection ended within the body.", path);
        case body_result::timed_out:
            return problem_reply(problem::request_timeout, "The body did not arrive whole in time.", path);
        case body_result::too_large:
            return problem_reply(problem::payload_too_large, "The body is larger than 16 KiB.", path);
        case body_result::malformed:
            return problem_reply(problem::bad_request, "The chunked coding of the body is malformed.", path);
    }
    return std::nullopt;
}

/// The answer does not depend on the body. A body that may be as long as it says is read and dropped, so that the
/// requests behind it are served; with one that is too long, or that waits for a 100, the connection ends.
boost::asio::awaitable<session::sequel> session::answer_without_handler(exchange& exchange,
                                                                        beast::flat_buffer& buffer) {
    const auto& request = exchange.request();
    const bool skip_body = !request.expects_continue && request.content_length.value_or(0) <= limits::body_bytes_max;
    if (request.has_body && !skip_body) co_return co_await answer_and_close(exchange);
    const bool keep_alive = exchange.wants_keep_alive() && !group_->draining();
    const io_result written = co_await write_answer(exchange, keep_alive);
    if (written != io_result::done) co_return written == io_result::timed_out ? sequel::reset : sequel::drop;
    if (!keep_alive) co_return sequel::linger;
    if (!request.has_body) co_return sequel::next_request;
    const body_result body = co_await read_body(exchange, buffer);
    co_return body == body_result::complete ? sequel::next_request : sequel::linger;
}

boost::asio::awaitable<session::sequel> session::answer_with_handler(exchange& exchange, beast::flat_buffer& buffer) {
    if (exchange.request().has_body) {
        if (exchange.request().expects_continue && buffer.size() == 0) {
            const io_result written = co_await write("HTTP/1.1 100 Continue\r\n\r\n");
            if (written != io_result::done) co_return written == io_result::timed_out ? sequel::reset : sequel::drop;
        }
        const body_result body = co_await read_body(exchange, buffer);
        exchange.answer = body_fault(body, exchange);
        if (exchange.answer) co_return co_await answer_and_close(exchange);
        exchange.take_body();
    }
    disarm();  // The service has its own deadline.
    at_work_ = &exchange;
    unread_ = &buffer;
    client_gone_ = false;
    exchange.ask_on_behalf_of(*this);
    auto& answer = exchange.answer;
    try {
        answer = co_await group_->handler().handle(exchange.request());
    } catch (const boost::system::system_error&) {
        if (!client_gone_) throw;
    }
    if (attending_) {
        co_await asio::this_coro::reset_cancellation_state();
        dismiss();
    }
    // What arrived in this very moment counts, too.
    if (!answer || client_gone_ || (exchange.patience() > 0s && has_peer_ended())) {
        if (answer && answer->undelivered) answer->undelivered();
        co_return sequel::drop;
    }
    const bool keep_alive = exchange.wants_keep_alive() && !group_->draining() && !answer->close;
    const io_result written = co_await write_answer(exchange, keep_alive);
    if (written != io_result::done) {
        if (answer->undelivered) answer->undelivered();
        co_return written == io_result::timed_out ? sequel::reset : sequel::drop;
    }
    co_return keep_alive ? sequel::next_request : sequel::linger;
}

// ---- The client of a request that waits. Its connection is looked at whenever something arrives: what the client
// sends ahead is kept for later, the end of what it sends is its end. No coroutine of its own and no timer of its own;
// a connection that waits for nothing but its turn costs one pending wait for readability.

void session::may_wait(std::chrono::seconds patience) {
    at_work_->be_patient(patience);
}

boost::asio::awaitable<void> session::stands_in_line() {
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    at_work_->drop_body();
    if (unread_->size() == 0) unread_->shrink_to_fit();
    attending_ = true;
    ++watches_;
    watch_client();
}

void session::watch_client() {
    socket_.async_wait(connection::wait_read, [self = shared_from_this(), watch = watches_](error_code aborted) {
        if (!aborted && self->attending_ && self->watches_ == watch) self->look_at_client();
    });
}

void session::look_at_client() {
    const auto has_room = [this] { return unread_->size() < limits::read_buffer_bytes_max; };
    const bool ended = has_room() ? read_at_once(*unread_) == io_result::closed : has_peer_ended();
    if (ended) return client_went();
    if (has_room()) return watch_client();
    error_code ignored;
    socket_.set_option(asio::socket_base::receive_buffer_size(2 * limits::unread_bytes_max), ignored);
    // Unread bytes would wake every wait at once.
    arm(limits::full_buffer_watch_interval);
}

void session::client_went() {
    client_gone_ = true;
    disarm();
    cancel_.emit(asio::cancellation_type::total);
}

void session::dismiss() {
    attending_ = false;
    disarm();
    error_code ignored;
    socket_.cancel(ignored);
}

/// Also behind bytes that were not read yet, up to the number that may hide it.
bool session::has_peer_ended() {
    error_code ignored;
    if (socket_.available(ignored) > limits::unread_bytes_max) return true;
    ::pollfd peer{socket_.native_handle(), POLLRDHUP, 0};
    return ::poll(&peer, 1, 0) > 0 && (peer.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

boost::asio::awaitable<session::sequel> session::answer_and_close(exchange& exchange) {
    const io_result written = co_await write_answer(exchange, false);
    if (written != io_result::done) co_return written == io_result::timed_out ? sequel::reset : sequel::drop;
    co_return sequel::linger;
}

boost::asio::awaitable<session::head_result> session::read_head(exchange& exchange, beast::flat_buffer& buffer) {
    bool begun = buffer.size() > 0;
    for (;;) {
        if (begun) {
            skip_empty_lines(buffer);
            if (buffer.size() == 0) co_return head_result::nothing;
            switch (exchange.scanner.scan(text_of(buffer))) {
                case head_scanner::verdict::complete:
                    co_return head_result::complete;
                case head_scanner::verdict::refused:
                    co_return head_result::refused;
                case head_scanner::verdict::need_more:
                    break;
            }
        }
        io_result read = read_at_once(buffer);
        if (read == io_result::nothing_yet) read = co_await read_later(buffer);
        if (read == io_result::timed_out) co_return begun ? head_result::timed_out : head_result::nothing;
        if (read == io_result::closed) co_return begun ? head_result::ended_early : head_result::closed;
        begun = true;
    }
}

boost::asio::awaitable<session::body_result> session::read_body(exchange& exchange, beast::flat_buffer& buffer) {
    arm(group_->settings().body_deadline);
    auto& parser = exchange.parser();
    parser.eager(true);
    while (!parser.is_done()) {
        error_code fault = beast::http::error::need_more;
        if (buffer.size() > 0) buffer.consume(parser.put(buffer.cdata(), fault));
        if (fault == beast::http::error::body_limit) co_return body_result::too_large;
        if (fault && fault != beast::http::error::need_more) co_return body_result::malformed;
        if (parser.is_done()) break;
        // What is left is a chunk's size line or trailer fields that do not end yet: they never will after a bare LF,
        // and must not fill the buffer.
        if (has_bare_line_feed(text_of(buffer)) || buffer.size() >= limits::read_buffer_bytes_max)
            co_return body_result::malformed;
        io_result read = read_at_once(buffer);
        if (read == io_result::nothing_yet) read = co_await read_later(buffer);
        if (read == io_result::timed_out) co_return body_result::timed_out;
        if (read == io_result::closed) co_return body_result::ended_early;
    }
    co_return body_result::complete;
}

// ---- Input and output. The socket does not block: what is there is taken at once, and only then is there a wait.

boost::asio::awaitable<session::io_result> session::wait(connection::wait_type event) {
    if (expired()) co_return io_result::timed_out;
    error_code fault;
    co_await socket_.async_wait(event, asio::redirect_error(asio::use_awaitable, fault));
    if (!fault) co_return io_result::done;
    co_return expired_ && !cut_off_ ? io_result::timed_out : io_result::closed;
}

session::io_result session::read_at_once(beast::flat_buffer& buffer) {
    const std::size_t room = std::min(limits::read_piece_bytes, limits::read_buffer_bytes_max - buffer.size());
    error_code fault;
    const std::size_t received = socket_.read_some(buffer.prepare(room), fault);
    buffer.commit(received);
    if (!fault) return io_result::done;
    return would_block(fault) ? io_result::nothing_yet : io_result::closed;
}

boost::asio::awaitable<session::io_result> session::read_later(beast::flat_buffer& buffer) {
    io_result read = io_result::nothing_yet;
    while (read == io_result::nothing_yet) {
        const io_result waited = co_await wait(connection::wait_read);
        if (waited != io_result::done) co_return waited;
        read = read_at_once(buffer);
    }
    co_return read;
}

boost::asio::awaitable<session::io_result> session::write(std::string_view bytes) {
    arm(group_->settings().write_deadline);
    while (!bytes.empty()) {
        error_code fault;
        const std::size_t sent = socket_.write_some(asio::buffer(bytes.data(), bytes.size()), fault);
        bytes.remove_prefix(sent);
        if (would_block(fault)) {
            const io_result waited = co_await wait(connection::wait_write);
            if (waited != io_result::done) co_return waited;
        } else if (fault) {
            co_return io_result::closed;
        }
    }
    co_return io_result::done;
}

boost::asio::awaitable<session::io_result> session::write_answer(exchange& exchange, bool keep_alive) {
    exchange.name_it();
    const reply& answer = *exchange.answer;
    std::string& bytes = group_->answer_bytes();
    format(bytes, exchange, answer, keep_alive);
    // Before the client can see the answer, so that whoever asks the log or the metrics about it finds it there.
    record(exchange, answer);
    error_code fault;
    const std::size_t sent = socket_.write_some(asio::buffer(bytes), fault);
    if (!fault && sent == bytes.size()) co_return io_result::done;
    if (fault && !would_block(fault)) co_return io_result::closed;
    const std::string rest = bytes.substr(sent);  // While this one waits, others write their answers.
    co_return co_await write(rest);
}

/// Tells the client that nothing more comes, then reads what it still sends, so that no reset destroys the answer on
/// its way.
boost::asio::awaitable<void> session::linger() {
    error_code fault;
    socket_.shutdown(connection::shutdown_send, fault);
    if (fault) co_return;
    const auto end = steady::now() + limits::linger_time_max;
    auto& waste = group_->waste();
    std::size_t thrown_away = 0;
    while (thrown_away < limits::linger_bytes_max) {
        arm(std::min(end, steady::now() + limits::linger_silence_max));
        // Waiting before every piece lets other connections take their turn while this one pours.
        const io_result waited = co_await wait(connection::wait_read);
        if (waited != io_result::done) co_return;
        const std::size_t received = socket_.read_some(asio::buffer(waste), fault);
        if (fault && !would_block(fault)) co_return;
        thrown_away += received;
    }
}

// ---- The answer's bytes, and what is written down about it.

void session::format(std::string& head, const exchange& exchange, const reply& answer, bool keep_alive) const {
    const bool http_1_0 = exchange.request().http_1_0;
    const auto reason = beast::http::obsolete_reason(static_cast<beast::http::status>(answer.status));
    const bool has_body = !answer.content_type.empty();
    head = http_1_0 ? "HTTP/1.0 " : "HTTP/1.1 ";
    head += std::to_string(answer.status);
    head += ' ';
    head.append(reason.data(), reason.size());
    head += "\r\nDate: ";
    head += group_->http_date();
    head += "\r\nX-Request-Id: ";
    head += exchange.request_id();
    if (has_body) {
        head += "\r\nContent-Type: ";
        head += answer.content_type;
        head += "\r\nContent-Length: ";
        head += std::to_string(answer.body.size());
    }
    if (answer.no_store) head += "\r\nCache-Control: no-store";
    if (answer.retry_after) head += "\r\nRetry-After: 1";
    if (!answer.allow.empty()) head += "\r\nAllow: " + answer.allow;
    if (!keep_alive)
        head += "\r\nConnection: close";
    else if (http_1_0)
        head += "\r\nConnection: keep-alive";
    head += "\r\n\r\n";
    if (has_body && !exchange.is_head()) head += answer.body;
}

void session::record(const exchange& exchange, const reply& answer) const {
    const auto elapsed = steady::now() - exchange.started();
    const auto& request = exchange.request();
    const bool matched = request.route.result == match_result::matched;
    if (exchange.patience() > 0s)
        group_->metrics().answered_after_wait(answer.status, elapsed);
    else
        group_->metrics().answered(matched ? std::optional(request.route.meant) : std::nullopt, answer.status, elapsed);
    const auto duration = std::chrono::duration<double, std::milli>(elapsed);
    const milliseconds slow_request = group_->settings().slow_request;
    const bool slow = duration >= slow_request + (slow_request.count() > 0 ? exchange.patience() : 0s);
    if (answer.status < 400 && !slow) return;
    // A probe that hears "not ready" twice a second is the node's state, which has its own events, and no failure.
    const bool worth_telling = answer.status >= 500 && request.route.meant != operation::readiness;
    const auto level = answer.status == 500 ? domain::log_level::error
                       : worth_telling      ? domain::log_level::warning
                       : slow               ? domain::log_level::info
                                            : domain::log_level::debug;
    const auto path = request.route.path.empty() ? request.target : request.route.path;
    const domain::log_field method{"method", request.method.substr(0, limits::logged_method_bytes_max)};
    const domain::log_field shown_path{"path", path.substr(0, limits::logged_path_bytes_max)};
    const domain::log_field status{"status", std::int64_t{answer.status}};
    const domain::log_field problem{"problem", answer.problem};
    const domain::log_field took{"duration_ms", duration.count()};
    const domain::log_field id{"request_id", std::string_view(exchange.request_id())};
    const domain::log_field trace{"traceparent",
                                  request.traceparent.first.substr(0, limits::logged_traceparent_bytes_max)};
    auto& journal = group_->journal();
    if (answer.error_id.empty())
        journal.write(level, "request", {method, shown_path, status, problem, took, id, trace});
    else
        journal.write(level, "request",
                      {method,
                       shown_path,
                       status,
                       problem,
                       took,
                       id,
                       trace,
                       {"error_id", std::string_view(answer.error_id)},
                       {"cause", std::string_view(answer.log_cause)}});
}

}  // namespace holdfast::http
