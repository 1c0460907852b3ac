#ifndef HOLDFAST_PG_QUERIES_HPP
#define HOLDFAST_PG_QUERIES_HPP

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::pg {

/// The statements of sql/queries. Those that lock rows come twice: `fast` leaves locked rows alone, `slow` waits for
/// them.
enum class query {
    acquire_fast,
    acquire_slow,
    renew_fast,
    renew_slow,
    release_fast,
    release_slow,
    pass_on,
    restamp,
    look,
    probe,
    analyze,
    sweep,
    queue,
    announce,
    settle_memory,
    draw_node,
    beat,
    survey,
    tidy_queue,
    schema_version,
    advance_tokens
};

inline constexpr std::size_t query_count = 21;

/// The query's name, also that of its prepared statement.
std::string_view query_name(query which) noexcept;

/// Replaces {schema}, {table}, {skip_locked} and the names of sequences, {fencing_tokens}, {places}, {attachments} and
/// {node_numbers}, in a text of sql/. `schema` is any name of 1 to 63 bytes.
std::string fill_in(std::string_view text, std::string_view schema, bool skip_locked = true);

/// "schema" as an SQL identifier.
std::string quoted_identifier(std::string_view name);

/// The texts of all queries for one schema.
class query_texts {
public:
    explicit query_texts(std::string_view schema);

    const std::string& text(query which) const noexcept { return texts_[static_cast<std::size_t>(which)]; }

private:
    std::array<std::string, query_count> texts_;
};

struct migration {
    int version;
    std::string name;
    std::string_view text;  ///< With placeholders.
};

/// The migrations compiled in, in order: 1, 2, 3 …
std::vector<migration> known_migrations();

}  // namespace holdfast::pg

#endif
