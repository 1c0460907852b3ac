#ifndef HOLDFAST_PG_EMBEDDED_SQL_HPP
#define HOLDFAST_PG_EMBEDDED_SQL_HPP

#include <span>
#include <string_view>

namespace holdfast::pg {

/// One file of the source tree, compiled in by cmake/embed.cmake.
struct embedded_file {
    std::string_view path;
    std::string_view text;
};

/// The files below sql/ (migrations/NNNN_name.sql, queries/name.sql), sorted by path.
std::span<const embedded_file> embedded_sql() noexcept;

}  // namespace holdfast::pg

#endif
