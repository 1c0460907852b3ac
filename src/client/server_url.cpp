#include "holdfast/client/server_url.hpp"

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

namespace holdfast::client {

std::optional<server_url> server_url::parse(std::string_view text) {
    const boost::system::result<boost::urls::url_view> parsed = boost::urls::parse_uri(text);
    if (!parsed) return std::nullopt;
    const boost::urls::url_view& url = *parsed;
    const bool has_path = !url.encoded_path().empty() && url.encoded_path() != "/";
    if (url.scheme_id() != boost::urls::scheme::http || url.has_userinfo() || has_path || url.has_query() ||
        url.has_fragment() || url.host().empty())
        return std::nullopt;
    if (url.has_port() && url.port_number() == 0) return std::nullopt;

    server_url server;
    server.host = url.host_type() == boost::urls::host_type::name ? url.host() : url.host_address();
    if (url.has_port()) server.port = url.port_number();
    server.authority = std::string(url.encoded_host_and_port());
    return server;
}

}  // namespace holdfast::client
