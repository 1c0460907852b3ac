#ifndef HOLDFAST_PG_SQL_BACKEND_HPP
#define HOLDFAST_PG_SQL_BACKEND_HPP

#include "holdfast/domain/journal.hpp"
#include "holdfast/pg/backend.hpp"
#include "holdfast/pg/connection.hpp"
#include "holdfast/pg/database_clock.hpp"
#include "holdfast/pg/meter.hpp"
#include "holdfast/pg/queue_rows.hpp"

#include <optional>
#include <string>

namespace holdfast::pg {

/// The commands as SQL. Repeats a statement only where the last one certainly had no effect, and only before the
/// deadline: rows that raced with somebody else's, rows that were late by an outdated clock reading, victims of
/// deadlocks.
class sql_backend final : public backend {
public:
    /// All references must outlive the backend. Does not connect yet.
    sql_backend(const database_settings& settings, const query_texts& texts, database_clock& clock, socket_watch& watch,
                domain::journal& journal, meter& meter = no_meter())
        : settings_(settings),
          texts_(texts),
          clock_(clock),
          watch_(watch),
          journal_(journal),
          meter_(meter),
          channel_(wake_channel(settings.schema)) {}

    bool connect() override;
    bool usable() override { return connection_ && connection_->quiet(); }
    std::vector<reply> run(std::span<const request> requests, lane lane, std::chrono::milliseconds lock_wait) override;

private:
    class batch_run;

    const database_settings& settings_;
    const query_texts& texts_;
    database_clock& clock_;
    socket_watch& watch_;
    domain::journal& journal_;
    meter& meter_;
    std::string channel_;
    bool was_connected_ = false;
    std::optional<connection> connection_;
};

}  // namespace holdfast::pg

#endif
