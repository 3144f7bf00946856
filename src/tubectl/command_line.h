// The command line of tubectl: finds the subcommand and runs it.
#pragma once

#include <string>

namespace tubed::tubectl {

// A descriptor below 3 that is closed becomes one that can only be read from: else the socket would
// get its number, and what is printed go to the server. To be called before anything is opened.
void occupy_standard_descriptors();

// Returns the exit code.
int run(int argc, const char* const* argv);

// The scripts that complete its subcommands, options and tubes in a shell: completion.h.
std::string completion_tables_for_bash();
std::string completion_for_zsh();

}  // namespace tubed::tubectl
