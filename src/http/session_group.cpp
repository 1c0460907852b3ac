#include "holdfast/http/session_group.hpp"

#include "holdfast/http/session.hpp"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstdio>
#include <utility>
#include <vector>

namespace holdfast::http {

session_group::session_group(boost::asio::any_io_executor executor, server_settings settings,
                             service::lease_service& service, const service::readiness& readiness,
                             http::metrics& metrics, domain::journal& journal)
    : executor_(executor),
      settings_(std::move(settings)),
      metrics_(metrics),
      journal_(journal),
      handlers_(settings_, service, readiness, metrics, ids_),
      emptied_(executor) {}

session_group::~session_group() = default;

void session_group::open(connection socket) {
    const bool refused = served_ >= settings_.connections_max;
    if (refused && refused_ >= limits::refusals_max) return;
    std::make_shared<session>(shared_from_this(), std::move(socket), refused)->start();
}

void session_group::begin_drain() {
    draining_ = true;
    for (session* member : sessions_)
        member->hasten();
}

boost::asio::awaitable<bool> session_group::wait_until_empty(std::chrono::steady_clock::time_point until) {
    while (!sessions_.empty()) {
        if (std::chrono::steady_clock::now() >= until) co_return false;
        boost::system::error_code emptied;
        emptied_.expires_at(until);
        co_await emptied_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, emptied));
    }
    co_return true;
}

void session_group::cut_off() {
    // A session may end, and leave the set, while it is told.
    std::vector<std::shared_ptr<session>> members;
    members.reserve(sessions_.size());
    for (session* member : sessions_)
        members.push_back(member->shared_from_this());
    for (const auto& member : members)
        member->cut_off();
}

void session_group::enlist(session& member, bool refused) {
    sessions_.insert(&member);
    ++(refused ? refused_ : served_);
    if (!refused) metrics_.connection_opened();
}

void session_group::delist(session& member, bool refused) noexcept {
    sessions_.erase(&member);
    --(refused ? refused_ : served_);
    if (!refused) metrics_.connection_closed();
    if (sessions_.empty()) emptied_.cancel();
}

const std::string& session_group::http_date() {
    const std::time_t now = std::time(nullptr);
    if (now == date_of_) return date_;
    constexpr const char* days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    constexpr const char* months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    std::array<char, 96> text;
    const int length =
        std::snprintf(text.data(), text.size(), "%s, %02d %s %04d %02d:%02d:%02d GMT", days[utc.tm_wday], utc.tm_mday,
                      months[utc.tm_mon], utc.tm_year + 1900, utc.tm_hour, utc.tm_min, utc.tm_sec);
    date_.assign(text.data(), static_cast<std::size_t>(length));
    date_of_ = now;
    return date_;
}

}  // namespace holdfast::http
