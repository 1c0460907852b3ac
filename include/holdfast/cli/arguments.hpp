#ifndef HOLDFAST_CLI_ARGUMENTS_HPP
#define HOLDFAST_CLI_ARGUMENTS_HPP

namespace CLI {
class App;
}

namespace holdfast::cli {

/// Lets `command` parse. False when help was asked for and printed: the subcommand is done. Throws app::usage_error
/// with one line for what cannot be parsed; values are left out of it, since they may be secrets.
bool parse_arguments(CLI::App& command, int argc, char** argv);

}  // namespace holdfast::cli

#endif
