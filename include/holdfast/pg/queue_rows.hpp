#ifndef HOLDFAST_PG_QUEUE_ROWS_HPP
#define HOLDFAST_PG_QUEUE_ROWS_HPP

// Commands on waiting lines as the parameters and the rows of sql/queries/queue.sql, and wakes as the text in which
// nodes tell them to each other.

#include "holdfast/pg/backend.hpp"
#include "holdfast/pg/result_row.hpp"
#include "holdfast/pg/text_array.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::pg {

/// The array parameters of the query.
class queue_parameters {
public:
    void add(const queue_command& command, std::int64_t not_after);

    /// All parameters, in order.
    std::vector<std::string> all(std::size_t places_max, bool skip_locked, const std::string& lock_wait) const;

private:
    text_array kinds_, resources_, owners_, ttls_, keys_, nodes_, places_, attachments_, tokens_, limits_;
};

/// What a row says about its command. Nothing if it grants a lease of which nothing is left. Throws std::logic_error
/// for a verdict that the command cannot have.
std::optional<queue_outcome> queue_outcome_of(const queue_command& command, const result_row& row);

/// "node place;node place"; what cannot be understood is skipped: it comes from a release that knows more.
std::vector<domain::wake> parse_wakes(std::string_view text);

/// Wakes as payloads of notifications, each below the 8000 bytes that one may have.
std::vector<std::string> wake_payloads(const std::vector<domain::wake>& wakes);

/// The channel on which nodes that share this schema tell each other: a plain lower-case name for any schema.
std::string wake_channel(std::string_view schema);

}  // namespace holdfast::pg

#endif
