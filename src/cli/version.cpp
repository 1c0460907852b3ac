#include "holdfast/app/arguments.hpp"
#include "holdfast/cli/subcommands.hpp"
#include "holdfast/pg/build_info.hpp"

#include <boost/version.hpp>

#include <CLI/CLI.hpp>

#include <iostream>

namespace holdfast::cli {
namespace {

#if defined(__clang__)
constexpr const char* compiler = "clang " __clang_version__;
#else
constexpr const char* compiler = "g++ " __VERSION__;
#endif

}  // namespace

int version(int argc, char** argv) {
    CLI::App command("Print what this binary is made of.", "holdfast version");
    if (!app::parse_arguments(command, argc, argv)) return 0;
    std::cout << "holdfast  " HOLDFAST_VERSION "\n"
              << "commit    " HOLDFAST_COMMIT "\n"
              << "compiler  " << compiler << '\n'
              << "boost     " << BOOST_VERSION / 100'000 << '.' << BOOST_VERSION / 100 % 1'000 << '.'
              << BOOST_VERSION % 100 << '\n'
              << "libpqxx   " << pg::pqxx_version() << '\n'
              << "schema    " << pg::known_schema_version() << '\n';
    return 0;
}

}  // namespace holdfast::cli
