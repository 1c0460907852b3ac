#include "holdfast/pg/connection_url.hpp"

#include <libpq-fe.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

namespace holdfast::pg {
namespace {

using options = std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)>;

/// What an operator needs to see to know which database this is. A list of secrets would miss those of later libpq
/// versions (oauth_client_secret, scram_client_key …); `options` may carry anything.
constexpr std::array<std::string_view, 19> harmless_keywords{"host",
                                                             "hostaddr",
                                                             "port",
                                                             "dbname",
                                                             "user",
                                                             "service",
                                                             "sslmode",
                                                             "sslcert",
                                                             "sslkey",
                                                             "sslrootcert",
                                                             "sslcrl",
                                                             "gssencmode",
                                                             "passfile",
                                                             "connect_timeout",
                                                             "application_name",
                                                             "keepalives",
                                                             "target_session_attrs",
                                                             "channel_binding",
                                                             "client_encoding"};

bool is_harmless(std::string_view keyword) {
    return std::find(harmless_keywords.begin(), harmless_keywords.end(), keyword) != harmless_keywords.end();
}

/// `scheme://user:pa@ss@host` leaves `ss@host` in host, `user:pa/s@host` leaves `s@host` in dbname. Only a user name
/// may honestly hold an `@`, and libpq never cuts there.
bool looks_cut_in_two(const PQconninfoOption& option) {
    return std::string_view(option.keyword) != "user" && is_harmless(option.keyword) &&
           std::string_view(option.val).find('@') != std::string_view::npos;
}

std::string quoted(std::string_view value) {
    const bool plain = !value.empty() && value.find_first_of(" '\\\t\n") == std::string_view::npos;
    if (plain) return std::string(value);
    std::string text = "'";
    for (const char c : value) {
        if (c == '\'' || c == '\\') text += '\\';
        text += c;
    }
    return text += '\'';
}

}  // namespace

std::optional<std::string> describe_without_secrets(const std::string& url) {
    const options parsed(PQconninfoParse(url.c_str(), nullptr), &PQconninfoFree);
    if (!parsed) return std::nullopt;
    std::string text;
    for (const PQconninfoOption* option = parsed.get(); option->keyword; ++option) {
        if (!option->val) continue;
        if (looks_cut_in_two(*option)) return "***";
        if (!text.empty()) text += ' ';
        text += option->keyword;
        text += '=';
        text += is_harmless(option->keyword) ? quoted(option->val) : "***";
    }
    return text;
}

}  // namespace holdfast::pg
