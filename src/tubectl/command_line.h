// The command line of tubectl: parses it by the table of subcommands and runs the named subcommand.
//
// Parses the arguments, runs the named subcommand and returns the exit code of the process. All
// output of mistakes goes to standard error and ends with the command that prints the help.
#pragma once

namespace tubed::tubectl {

// Returns the exit code.
int run(int argc, const char* const* argv);

}  // namespace tubed::tubectl
