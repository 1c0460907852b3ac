#include "holdfast/app/arguments.hpp"

#include "holdfast/app/option_set.hpp"
#include "holdfast/app/usage_error.hpp"

#include <CLI/CLI.hpp>

#include <iostream>
#include <string>
#include <string_view>

namespace holdfast::app {
namespace {

/// CLI11's own message quotes the arguments whole; a misspelt --database-url would show the password after it.
std::string describe_unknown(const CLI::App& command) {
    std::string flags;
    for (const std::string& argument : command.remaining()) {
        if (!argument.starts_with('-')) continue;
        if (!flags.empty()) flags += ", ";
        flags += printable(argument.substr(0, argument.find('=')));
    }
    return flags.empty() ? "an argument that is no option was given" : "unknown option " + flags;
}

/// For `--name=` CLI11 takes the next argument as the value: `--database-schema=$UNSET --port=1` would lose the port.
void refuse_missing_values(int argc, const char* const* argv) {
    for (int n = 1; n < argc; ++n) {
        const std::string_view argument = argv[n];
        if (argument.starts_with("--") && argument.find('=') == argument.size() - 1)
            throw usage_error(printable(argument.substr(0, argument.size() - 1)) + " has no value");
    }
}

}  // namespace

bool parse_arguments(CLI::App& command, int argc, const char* const* argv) {
    refuse_missing_values(argc, argv);
    try {
        command.parse(argc, argv);
        return true;
    } catch (const CLI::CallForHelp&) {
        std::cout << command.help();
        return false;
    } catch (const CLI::ExtrasError&) {
        throw usage_error(describe_unknown(command) + "; see --help");
    } catch (const CLI::ParseError& error) {
        throw usage_error(error.what());
    }
}

}  // namespace holdfast::app
