// The command line of tubectl: finds the subcommand and runs it.
#pragma once

namespace tubed::tubectl {

// Returns the exit code.
int run(int argc, const char* const* argv);

}  // namespace tubed::tubectl
