#ifndef HOLDFAST_CLI_SUBCOMMANDS_HPP
#define HOLDFAST_CLI_SUBCOMMANDS_HPP

namespace holdfast::cli {

// Each takes its own name as argv[0] and returns the process's exit code. Throws app::usage_error for arguments,
// variables and settings that cannot be; `--help` prints to standard output and returns 0.

/// Runs a node until a signal ends it. 0 after an orderly end, 1 for a failed start or a fault, 128 + signal when a
/// second signal cut the end short.
int serve(int argc, char** argv);

/// Brings the schema up to date, and with --advance-tokens moves the fencing tokens ahead. 1 when that failed.
int migrate(int argc, char** argv);

/// Loads a server and prints how it did. 0 if it ran, whatever was answered; 1 if every request failed, or if waiters
/// were granted what the contract does not allow; 69 if no server could be reached.
int bench(int argc, char** argv);

/// Prints what this binary is made of.
int version(int argc, char** argv);

}  // namespace holdfast::cli

#endif
