#ifndef HOLDFAST_HTTP_SESSION_HPP
#define HOLDFAST_HTTP_SESSION_HPP

#include "holdfast/http/request.hpp"
#include "holdfast/http/session_group.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace holdfast::http {

class exchange;

/// One connection: reads requests one after another, has them answered, and writes the answers in that order.
/// Everything that costs memory, buffer and parser, lives only while bytes of a request are there; an idle connection
/// holds a suspended coroutine and a timer. One whose request waits in line holds the parsed head, too, and notices a
/// client that goes away.
class session final : public std::enable_shared_from_this<session>, private requester {
public:
    /// What is left to do with the connection after a request.
    enum class sequel {
        next_request,
        linger,  ///< Close, but let the client finish sending first, so that it can read the answer.
        drop,    ///< Close at once: the client is gone.
        reset,   ///< Close hard: the client does not read what it is sent.
    };

    /// A `refused` connection is told 503 `overloaded`, and nothing it sends is read.
    session(std::shared_ptr<session_group> group, connection socket, bool refused);
    ~session();

    /// Starts; the session owns itself until the connection has ended.
    void start();
    /// The group begins to drain: an idle session has a short grace left.
    void hasten();
    /// Ends it now, whatever it does.
    void cut_off();

private:
    using time_point = std::chrono::steady_clock::time_point;
    template <class Value>
    using awaitable = boost::asio::awaitable<Value>;

    enum class io_result { done, closed, timed_out, nothing_yet };
    enum class head_result { complete, nothing, closed, ended_early, timed_out, refused };
    enum class body_result { complete, ended_early, timed_out, too_large, malformed };

    awaitable<void> run();
    awaitable<sequel> serve();
    awaitable<sequel> serve_burst();
    awaitable<sequel> refuse_connection();
    awaitable<sequel> serve_request(workspace& workspace, time_point started);
    awaitable<sequel> answer_without_handler(exchange& exchange, boost::beast::flat_buffer& buffer);
    awaitable<sequel> answer_with_handler(exchange& exchange, boost::beast::flat_buffer& buffer);
    awaitable<sequel> answer_and_close(exchange& exchange);
    static std::optional<reply> head_fault(head_result head, exchange& exchange,
                                           const boost::beast::flat_buffer& buffer);
    static std::optional<reply> body_fault(body_result body, const exchange& exchange);
    awaitable<bool> wait_for_request();
    awaitable<head_result> read_head(exchange& exchange, boost::beast::flat_buffer& buffer);
    awaitable<body_result> read_body(exchange& exchange, boost::beast::flat_buffer& buffer);
    awaitable<io_result> write_answer(exchange& exchange, bool keep_alive);
    awaitable<void> linger();

    /// The only one that says nothing_yet.
    io_result read_at_once(boost::beast::flat_buffer& buffer);
    awaitable<io_result> read_later(boost::beast::flat_buffer& buffer);
    awaitable<io_result> write(std::string_view bytes);
    awaitable<io_result> wait(connection::wait_type event);

    // requester. The watch lasts from stands_in_line() to dismiss().
    void may_wait(std::chrono::seconds patience) override;
    awaitable<void> stands_in_line() override;
    void watch_client();
    void look_at_client();
    void client_went();
    void dismiss();
    bool has_peer_ended();

    void format(std::string& head, const exchange& exchange, const reply& answer, bool keep_alive) const;
    void record(const exchange& exchange, const reply& answer) const;

    void arm(time_point deadline);
    void arm(std::chrono::milliseconds from_now);
    void disarm() { deadline_ = time_point::max(); }
    void start_timer();
    void on_timer();
    bool expired() const { return expired_ || std::chrono::steady_clock::now() >= deadline_; }

    std::shared_ptr<session_group> group_;
    connection socket_;
    boost::asio::steady_timer timer_;
    boost::asio::cancellation_signal cancel_;
    time_point deadline_ = time_point::max();      ///< Of what is waited for now.
    time_point idle_until_ = time_point::max();    ///< When the patience between two requests ends.
    time_point timer_until_ = time_point::max();   ///< When the timer looks again; never later than deadline_.
    exchange* at_work_ = nullptr;                  ///< What a handler is asked about now.
    boost::beast::flat_buffer* unread_ = nullptr;  ///< What the client has sent behind it.
    std::uint32_t watches_ = 0;                    ///< Tells the present watch from one that ended.
    bool attending_ = false;
    bool client_gone_ = false;  ///< Seen while attending.
    bool expired_ = false;
    bool idle_ = false;
    bool cut_off_ = false;
    const bool refused_;
};

}  // namespace holdfast::http

#endif
