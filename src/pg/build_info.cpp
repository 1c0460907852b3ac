#include "holdfast/pg/build_info.hpp"

#include "holdfast/pg/embedded_sql.hpp"

#include <pqxx/version>

#include <algorithm>
#include <charconv>

namespace holdfast::pg {

std::string pqxx_version() {
    return PQXX_VERSION;
}

int known_schema_version() {
    constexpr std::string_view folder = "migrations/";  // then NNNN_name.sql
    int newest = 0;
    for (const embedded_file& file : embedded_sql()) {
        if (!file.path.starts_with(folder)) continue;
        const std::string_view name = file.path.substr(folder.size());
        int version = 0;
        std::from_chars(name.data(), name.data() + name.size(), version);
        newest = std::max(newest, version);
    }
    return newest;
}

}  // namespace holdfast::pg
