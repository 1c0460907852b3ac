#ifndef HOLDFAST_CLIENT_SERVER_URL_HPP
#define HOLDFAST_CLIENT_SERVER_URL_HPP

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::client {

/// Where a server is found.
struct server_url {
    std::string host;  ///< A name or an IP address, without brackets.
    std::uint16_t port = 80;
    std::string authority;  ///< For the Host header.

    /// Reads `http://HOST[:PORT][/]`. Nothing for any other scheme, for credentials, a path, a query or a fragment.
    static std::optional<server_url> parse(std::string_view text);
};

}  // namespace holdfast::client

#endif
