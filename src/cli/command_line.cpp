#include "holdfast/cli/command_line.hpp"

#include "holdfast/app/option_set.hpp"
#include "holdfast/app/usage_error.hpp"
#include "holdfast/cli/subcommands.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <iomanip>
#include <iostream>
#include <string_view>

namespace holdfast::cli {
namespace {

struct subcommand {
    std::string_view name;
    std::string_view description;
    int (*run)(int argc, char** argv);
};

constexpr std::array subcommands{
    subcommand{"serve", "Run a node: leases over HTTP on PostgreSQL", &serve},
    subcommand{"migrate", "Bring the database's schema up to date", &migrate},
    subcommand{"bench", "Put load on a server and print how it did", &bench},
    subcommand{"version", "Print what this binary is made of", &version},
};

void print_help(std::ostream& out) {
    out << "Holdfast: leases with fencing tokens, over HTTP, on PostgreSQL\n\n"
           "Usage: holdfast SUBCOMMAND [OPTIONS]\n\nSubcommands:\n";
    for (const subcommand& entry : subcommands)
        out << "  " << std::left << std::setw(10) << entry.name << entry.description << '\n';
    out << "\n`holdfast SUBCOMMAND --help` lists the options.\n";
}

int run_subcommand(const subcommand& chosen, int argc, char** argv) {
    try {
        return chosen.run(argc, argv);
    } catch (const app::usage_error& error) {
        std::cerr << "holdfast " << chosen.name << ": " << error.what() << '\n';
        return app::usage_error::exit_code;
    } catch (const std::exception& error) {
        std::cerr << "holdfast " << chosen.name << ": " << error.what() << '\n';
        return 1;
    }
}

}  // namespace

int run_command_line(int argc, char** argv) {
    const std::string_view name = argc > 1 ? argv[1] : "";
    if (name.empty()) {
        print_help(std::cerr);
        return app::usage_error::exit_code;
    }
    if (name == "--help" || name == "-h" || name == "help") {
        print_help(std::cout);
        return 0;
    }
    const auto matches = [&](const subcommand& entry) {
        return entry.name == name || (name == "--version" && entry.name == "version");
    };
    const auto chosen = std::find_if(subcommands.begin(), subcommands.end(), matches);
    if (chosen == subcommands.end()) {
        std::cerr << "holdfast: no subcommand \"" << app::printable(name) << "\"; see holdfast --help\n";
        return app::usage_error::exit_code;
    }
    return run_subcommand(*chosen, argc - 1, argv + 1);
}

}  // namespace holdfast::cli
