#include "holdfast/cli/command_line.hpp"

int main(int argc, char** argv) {
    return holdfast::cli::run_command_line(argc, argv);
}
