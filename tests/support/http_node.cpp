#include "support/http_node.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <sys/socket.h>

#include <future>
#include <stdexcept>

namespace holdfast::test {

namespace asio = boost::asio;
using boost::asio::awaitable;

namespace {

std::string text_of(const decltype(domain::log_field::value)& value) {
    struct writer {
        std::string operator()(std::string_view text) const { return std::string(text); }
        std::string operator()(std::int64_t number) const { return std::to_string(number); }
        std::string operator()(double number) const { return std::to_string(number); }
        std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    };
    return std::visit(writer(), value);
}

std::string name_of(domain::log_level level) {
    switch (level) {
        case domain::log_level::debug:
            return "debug";
        case domain::log_level::info:
            return "info";
        case domain::log_level::warning:
            return "warning";
        case domain::log_level::error:
            return "error";
    }
    return {};
}

constexpr domain::timestamp clock_start = std::chrono::sys_days(std::chrono::year(2024) / 5 / 6) +
                                          std::chrono::hours(7) + std::chrono::minutes(8) + std::chrono::seconds(9);

}  // namespace

void kept_journal::write(domain::log_level level, std::string_view event,
                         std::initializer_list<domain::log_field> fields) noexcept {
    line written{{"event", std::string(event)}, {"level", name_of(level)}};
    for (const auto& field : fields)
        written[std::string(field.name)] = text_of(field.value);
    const std::lock_guard guard(mutex_);
    lines_.push_back(std::move(written));
}

std::vector<kept_journal::line> kept_journal::lines(std::string_view event) const {
    const std::lock_guard guard(mutex_);
    std::vector<line> found;
    for (const auto& kept : lines_)
        if (kept.at("event") == event) found.push_back(kept);
    return found;
}

awaitable<boost::system::error_code> faulty_store::meet_fault() {
    ++asked;
    switch (now.load()) {
        case fault::none:
            co_return boost::system::error_code();
        case fault::unavailable:
            co_return domain::errc::unavailable;
        case fault::overloaded:
            co_return domain::errc::overloaded;
        case fault::outcome_unknown:
            co_return domain::errc::outcome_unknown;
        case fault::internal:
            co_return domain::errc::internal;
        case fault::exception:
            throw std::runtime_error("a secret of the store");
        case fault::stuck: {
            asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            co_await never.async_wait(asio::use_awaitable);
        }
    }
    co_return boost::system::error_code();
}

awaitable<domain::result<domain::acquire_outcome>> faulty_store::acquire(domain::acquire_command command,
                                                                         store::deadline deadline) {
    if (const auto failed = co_await meet_fault()) co_return failed;
    co_return co_await memory_.acquire(std::move(command), deadline);
}

awaitable<domain::result<domain::renew_outcome>> faulty_store::renew(domain::renew_command command,
                                                                     store::deadline deadline) {
    if (const auto failed = co_await meet_fault()) co_return failed;
    co_return co_await memory_.renew(std::move(command), deadline);
}

awaitable<domain::result<domain::release_result>> faulty_store::release(domain::release_command command,
                                                                        store::deadline deadline) {
    if (const auto failed = co_await meet_fault()) co_return failed;
    co_return co_await memory_.release(std::move(command), deadline);
}

awaitable<domain::result<domain::look_outcome>> faulty_store::look(domain::look_command command,
                                                                   store::deadline deadline) {
    if (const auto failed = co_await meet_fault()) co_return failed;
    co_return co_await memory_.look(std::move(command), deadline);
}

http_node::http_node(http::server_settings settings, std::size_t waiters_max)
    : settings_(std::move(settings)),
      clock_us_(clock_start.time_since_epoch().count()),
      store_([this] { return domain::timestamp(std::chrono::microseconds(clock_us_.load())); }),
      queue_([this] { return domain::timestamp(std::chrono::microseconds(clock_us_.load())); }),
      registry_(context_.get_executor(), queue_, waiters_max, std::chrono::seconds(5)),
      service_(store_, queue_, registry_, std::chrono::seconds(5)),
      work_(context_.get_executor()),
      sessions_(std::make_shared<http::session_group>(context_.get_executor(), settings_, service_, readiness_,
                                                      metrics_, journal_)),
      thread_([this] { context_.run(); }) {}

http_node::~http_node() {
    on_io_thread([this] {
        server_.reset();
        sessions_->cut_off();
    });
    work_.reset();
    // A session that does not end keeps this thread, and then the test's time limit tells.
    thread_.join();
}

http_client http_node::connect() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("socketpair failed");
    on_io_thread(
        [&] { sessions_->open(http::connection(context_, asio::generic::stream_protocol(AF_UNIX, 0), ends[1])); });
    return http_client(ends[0]);
}

http_answer http_node::request(std::string_view method, std::string_view target, std::string_view body,
                               const http_client::header_list& headers) {
    return connect().request(method, target, body, headers);
}

void http_node::on_io_thread(const std::function<void()>& action) {
    const auto task = std::make_shared<std::packaged_task<void()>>(action);
    auto done = task->get_future();
    asio::post(context_, [task] { (*task)(); });
    done.get();
}

void http_node::fail_with(faulty_store::fault kind) {
    store_.now = kind;
    const auto told = [&](domain::errc fault) { queue_.fault = static_cast<int>(fault); };
    switch (kind) {
        case faulty_store::fault::none:
        case faulty_store::fault::stuck:
            queue_.fault = 0;
            break;
        case faulty_store::fault::unavailable:
            told(domain::errc::unavailable);
            break;
        case faulty_store::fault::overloaded:
            told(domain::errc::overloaded);
            break;
        case faulty_store::fault::outcome_unknown:
            told(domain::errc::outcome_unknown);
            break;
        case faulty_store::fault::internal:
            told(domain::errc::internal);
            break;
        case faulty_store::fault::exception:
            queue_.fault = -1;
            break;
    }
}

void http_node::offer(std::string_view resource) {
    on_io_thread([&] { queue_.wake(queue_.offer(resource)); });
}

void http_node::drain_waiters() {
    readiness_.is_draining = true;
    on_io_thread([this] { registry_.drain(); });
}

void http_node::begin_drain() {
    on_io_thread([this] { sessions_->begin_drain(); });
}

void http_node::cut_off() {
    on_io_thread([this] { sessions_->cut_off(); });
}

bool http_node::empty_within(std::chrono::milliseconds patience) {
    auto empty = asio::co_spawn(context_, sessions_->wait_until_empty(std::chrono::steady_clock::now() + patience),
                                asio::use_future);
    return empty.get();
}

std::uint16_t http_node::listen() {
    on_io_thread([this] {
        auto settings = settings_;
        settings.port = 0;
        server_ =
            std::make_unique<http::server>(context_.get_executor(), settings, service_, readiness_, metrics_, journal_);
        server_->start();
    });
    return server_->port();
}

std::chrono::milliseconds http_node::drain_listener(std::chrono::milliseconds limit) {
    const auto start = std::chrono::steady_clock::now();
    asio::co_spawn(context_, server_->drain(limit), asio::use_future).get();
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
}

}  // namespace holdfast::test
