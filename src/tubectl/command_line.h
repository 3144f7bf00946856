// The command line of tubectl: parses it by the table of subcommands and runs the named subcommand.
//
// Parses the arguments, runs the named subcommand and returns the exit code of the process. All
// output of mistakes goes to standard error and ends with the command that prints the help.
#pragma once

namespace tubed::tubectl {

// Opens /dev/null, for reading only, as each of the descriptors 0 to 2 that is closed. Otherwise
// the connection would get such a number, and output would go to the server. Call it before
// anything is opened.
void occupy_standard_descriptors();

// Returns the exit code.
int run(int argc, const char* const* argv);

}  // namespace tubed::tubectl
