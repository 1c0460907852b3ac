#ifndef HOLDFAST_HTTP_SESSION_GROUP_HPP
#define HOLDFAST_HTTP_SESSION_GROUP_HPP

#include "holdfast/domain/journal.hpp"
#include "holdfast/http/handlers.hpp"
#include "holdfast/http/limits.hpp"
#include "holdfast/http/metrics.hpp"
#include "holdfast/http/server_settings.hpp"
#include "holdfast/http/unique_id.hpp"
#include "holdfast/http/workspace.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>
#include <unordered_set>

namespace holdfast::http {

class session;

/// Every connection is a stream socket of some kind: TCP in service, one end of a socketpair in tests.
using connection = boost::asio::generic::stream_protocol::socket;

/// The connections of a server and what they share. Held by shared pointers; sessions keep it alive. I/O thread only.
class session_group : public std::enable_shared_from_this<session_group> {
public:
    /// `service`, `readiness`, `metrics` and `journal` must outlive every session, or cut_off() must have been called.
    session_group(boost::asio::any_io_executor executor, server_settings settings, service::lease_service& service,
                  const service::readiness& readiness, http::metrics& metrics, domain::journal& journal);
    ~session_group();

    /// Serves the connection until it ends. With connections_max open already, it is told 503 `overloaded` and closed.
    void open(connection socket);

    bool empty() const noexcept { return sessions_.empty(); }
    bool draining() const noexcept { return draining_; }

    /// From now on answers close their connections; idle ones end after limits::drain_grace.
    void begin_drain();
    /// True as soon as no session is left; false when that is not so at `until`.
    boost::asio::awaitable<bool> wait_until_empty(std::chrono::steady_clock::time_point until);
    /// Closes every connection and ends what its session waits for. The sessions end a moment later; those that wait
    /// for the service do not touch it again.
    void cut_off();

    // For the sessions.
    void enlist(session& member, bool refused);
    void delist(session& member, bool refused) noexcept;
    const server_settings& settings() const noexcept { return settings_; }
    handlers& handler() noexcept { return handlers_; }
    http::metrics& metrics() noexcept { return metrics_; }
    domain::journal& journal() noexcept { return journal_; }
    unique_ids& ids() noexcept { return ids_; }
    /// The value of the header Date, now.
    const std::string& http_date();
    /// Room for bytes that nobody will look at.
    std::array<char, 64 * 1024>& waste() noexcept { return waste_; }
    http::workspaces& workspaces() noexcept { return workspaces_; }
    /// Where an answer is written together. Another's at the next suspension.
    std::string& answer_bytes() noexcept { return answer_bytes_; }

private:
    boost::asio::any_io_executor executor_;
    const server_settings settings_;
    http::metrics& metrics_;
    domain::journal& journal_;
    unique_ids ids_;
    handlers handlers_;
    std::unordered_set<session*> sessions_;
    std::size_t served_ = 0;
    std::size_t refused_ = 0;
    bool draining_ = false;
    boost::asio::steady_timer emptied_;
    std::time_t date_of_ = -1;
    std::string date_;
    std::array<char, 64 * 1024> waste_;
    http::workspaces workspaces_;
    std::string answer_bytes_;
};

}  // namespace holdfast::http

#endif
