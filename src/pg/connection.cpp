#include "holdfast/pg/connection.hpp"

#include "holdfast/pg/pqxx_compat.hpp"

#include <libpq-fe.h>
#include <poll.h>

#include <map>

namespace holdfast::pg {
namespace {

std::string quoted_value(const std::string& value) {
    std::string quoted = "'";
    for (const char each : value) {
        if (each == '\'' || each == '\\') quoted += '\\';
        quoted += each;
    }
    return quoted + "'";
}

std::map<std::string, std::string> parsed_url(const std::string& url) {
    struct release {
        void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
    };
    char* message = nullptr;
    const std::unique_ptr<PQconninfoOption, release> options(PQconninfoParse(url.c_str(), &message));
    if (!options) {
        PQfreemem(message);  // It repeats parts of the URL, perhaps the password.
        throw std::runtime_error("the database URL cannot be understood");
    }
    std::map<std::string, std::string> given;
    for (const PQconninfoOption* option = options.get(); option->keyword; ++option)
        if (option->val) given.emplace(option->keyword, option->val);
    return given;
}

/// Calls `statement` and turns every failure of libpqxx into a statement_error.
template <class Statement>
auto translated(Statement statement) {
    try {
        return statement();
    } catch (const pqxx::insufficient_privilege& error) {  // libpqxx forgets the code of this one
        throw statement_error("42501", error.what());
    } catch (const pqxx::sql_error& error) {
        throw statement_error(error.sqlstate(), error.what());
    } catch (const pqxx::failure& error) {  // broken_connection among them
        throw statement_error("", error.what());
    }
}

}  // namespace

std::string connection_string(const database_settings& settings) {
    auto options = parsed_url(settings.url);
    options.emplace("connect_timeout", std::to_string(settings.connect_timeout.count()));
    options.emplace("application_name", "holdfast");
    options.emplace("keepalives", "1");
    options.emplace("keepalives_idle", "5");
    options.emplace("keepalives_interval", "2");
    options.emplace("keepalives_count", "3");
    options.emplace("tcp_user_timeout", std::to_string(settings.statement_timeout.count() + 1'000));
    options["client_encoding"] = "UTF8";
    std::string text;
    for (const auto& [keyword, value] : options)
        text += keyword + "=" + quoted_value(value) + " ";
    return text;
}

connection::connection(const database_settings& settings, const query_texts& texts, socket_watch& watch)
    : texts_(texts),
      watch_(watch),
      prepared_statements_(settings.prepared_statements),
      session_(std::make_unique<pqxx::connection>(connection_string(settings))) {
    compat::forbid_reconnecting(*session_);
    watch_.attach(session_->sock());
}

connection::~connection() {
    watch_.detach();
}

void connection::prepare(std::initializer_list<query> queries) {
    if (!prepared_statements_) return;
    for (const query which : queries)
        translated([&] { compat::prepare(*session_, std::string(query_name(which)), texts_.text(which)); });
}

pqxx::result connection::run(query which, const std::vector<std::string>& parameters) {
    try {
        return translated([&] {
            pqxx::nontransaction work(*session_);
            return prepared_statements_ ? compat::run_prepared(work, std::string(query_name(which)), parameters)
                                        : compat::run_text(work, texts_.text(which), parameters);
        });
    } catch (const statement_error& error) {
        broken_ = error.sqlstate().empty() || !session_->is_open();
        throw;
    }
}

bool connection::quiet() const noexcept {
    pollfd socket{session_->sock(), POLLIN, 0};
    return !broken_ && socket.fd >= 0 && ::poll(&socket, 1, 0) == 0;
}

}  // namespace holdfast::pg
