#ifndef HOLDFAST_PG_CONNECTION_URL_HPP
#define HOLDFAST_PG_CONNECTION_URL_HPP

#include <optional>
#include <string>

namespace holdfast::pg {

/// What `url` (a libpq URI or keyword/value string) says, as `keyword=value …`, fit for a log: parsed by libpq itself,
/// so every form in which a password can be written is known. Only keywords known to be harmless show their value, all
/// others `***`. Where an unescaped `@` suggests that libpq cut a password in two, nothing but `***` comes back.
/// Nothing when libpq cannot parse it; libpq's own message is withheld, since it quotes parts of the text.
std::optional<std::string> describe_without_secrets(const std::string& url);

}  // namespace holdfast::pg

#endif
