#ifndef HOLDFAST_PG_BUILD_INFO_HPP
#define HOLDFAST_PG_BUILD_INFO_HPP

#include <string>

namespace holdfast::pg {

/// The libpqxx that this binary was built with, e.g. `6.4.5`.
std::string pqxx_version();

/// The schema version that this binary brings and knows: the number of its last migration.
int known_schema_version();

}  // namespace holdfast::pg

#endif
