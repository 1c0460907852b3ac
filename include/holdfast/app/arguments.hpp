#ifndef HOLDFAST_APP_ARGUMENTS_HPP
#define HOLDFAST_APP_ARGUMENTS_HPP

namespace CLI {
class App;
}

namespace holdfast::app {

/// Lets `command` parse. False when help was asked for and printed: the subcommand is done. Throws usage_error
/// with one line for what cannot be parsed; values are left out of it, since they may be secrets.
bool parse_arguments(CLI::App& command, int argc, const char* const* argv);

}  // namespace holdfast::app

#endif
