#include "holdfast/cli/arguments.hpp"

#include "holdfast/app/option_set.hpp"
#include "holdfast/app/usage_error.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <string>

namespace holdfast::cli {
namespace {

/// CLI11's own message quotes the arguments whole; a misspelt --database-url would show the password after it.
std::string describe_unknown(const CLI::App& command) {
    std::string flags;
    for (const std::string& argument : command.remaining()) {
        if (!argument.starts_with('-')) continue;
        if (!flags.empty()) flags += ", ";
        flags += app::printable(argument.substr(0, argument.find('=')));
    }
    return flags.empty() ? "an argument that is no option was given" : "unknown option " + flags;
}

}  // namespace

bool parse_arguments(CLI::App& command, int argc, char** argv) {
    try {
        command.parse(argc, argv);
        return true;
    } catch (const CLI::CallForHelp&) {
        std::cout << command.help();
        return false;
    } catch (const CLI::ExtrasError&) {
        throw app::usage_error(describe_unknown(command) + "; see --help");
    } catch (const CLI::ParseError& error) {
        throw app::usage_error(error.what());
    }
}

}  // namespace holdfast::cli
