#ifndef HOLDFAST_PG_PQXX_COMPAT_HPP
#define HOLDFAST_PG_PQXX_COMPAT_HPP

// Every difference between libpqxx 6.4 (Debian 12) and 7.10 (Debian 13), and nothing else.

#include <pqxx/pqxx>

#include <string>
#include <vector>

namespace holdfast::pg::compat {

/// libpqxx 6.4 reconnects by itself inside the next call, losing what was prepared and repeating what may have run.
/// Never.
inline void forbid_reconnecting([[maybe_unused]] pqxx::connection& connection) {
#if PQXX_VERSION_MAJOR < 7
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    connection.inhibit_reactivation(true);
#pragma GCC diagnostic pop
#endif
}

/// Prepares on the server, now.
inline void prepare(pqxx::connection& connection, const std::string& name, const std::string& text) {
    connection.prepare(name, text);
#if PQXX_VERSION_MAJOR < 7
    connection.prepare_now(name);
#endif
}

#if PQXX_VERSION_MAJOR >= 7
inline pqxx::params as_params(const std::vector<std::string>& values) {
    pqxx::params params;
    for (const std::string& value : values)
        params.append(value);
    return params;
}
#endif

inline pqxx::result run_prepared(pqxx::transaction_base& work, const std::string& name,
                                 const std::vector<std::string>& values) {
#if PQXX_VERSION_MAJOR >= 7
    return work.exec(pqxx::prepped{name}, as_params(values));
#else
    return work.exec_prepared(name, pqxx::prepare::make_dynamic_params(values));
#endif
}

inline pqxx::result run_text(pqxx::transaction_base& work, const std::string& text,
                             const std::vector<std::string>& values) {
#if PQXX_VERSION_MAJOR >= 7
    return work.exec(text, as_params(values));
#else
    return work.exec_params(text, pqxx::prepare::make_dynamic_params(values));
#endif
}

}  // namespace holdfast::pg::compat

#endif
