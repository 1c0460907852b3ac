#ifndef HOLDFAST_HTTP_SERVER_SETTINGS_HPP
#define HOLDFAST_HTTP_SERVER_SETTINGS_HPP

#include "holdfast/domain/limits.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace holdfast::http {

/// How a node speaks HTTP. Defaults are those of the settings reference.
struct server_settings {
    std::string listen_address = "127.0.0.1";  ///< An IP address, not a name.
    std::uint16_t port = 8080;                 ///< 0: any free port; see server::port().
    std::size_t connections_max = 20'000;      ///< One more is answered 503 overloaded and closed.
    std::chrono::milliseconds header_deadline{10'000};
    std::chrono::milliseconds body_deadline{10'000};
    std::chrono::milliseconds write_deadline{10'000};
    std::chrono::milliseconds idle_timeout{75'000};
    std::chrono::milliseconds slow_request{1'000};  ///< A request that takes longer is logged.
    std::chrono::milliseconds outcome_final_after{
        6'000};  ///< What outcome-unknown promises: final this long after the answer.
    std::int64_t ttl_seconds_max = domain::limits::ttl_seconds_max_default;
};

}  // namespace holdfast::http

#endif
