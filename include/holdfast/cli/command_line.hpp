#ifndef HOLDFAST_CLI_COMMAND_LINE_HPP
#define HOLDFAST_CLI_COMMAND_LINE_HPP

namespace holdfast::cli {

/// Runs the subcommand that the arguments name and returns the process's exit code: 0, 64 for usage and contradictory
/// settings, 1 for a failed start, otherwise what the subcommand documents.
int run_command_line(int argc, char** argv);

}  // namespace holdfast::cli

#endif
