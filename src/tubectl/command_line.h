// The command line of tubectl: parses the arguments by the table of subcommands and runs the named
// subcommand. All mistakes are reported on standard error, with the command that prints the help.
#pragma once

namespace tubed::tubectl {

// Returns the exit code.
int run(int argc, const char* const* argv);

}  // namespace tubed::tubectl
