// Completion of tubectl in a shell, made from the tables of its subcommands.
//
// A TUBE is completed with the tubes of the server: the scripts run `tubectl tubes --names`, for at
// most a second. A tube's name may contain any shell syntax, so no script ever evaluates one.
//
// Both functions are pure: the same tables give the same text.
#pragma once

#include <string>

namespace tubed::docs {

// For bash: the functions in packaging/completions/tubectl.bash that list the candidates.
std::string tubectl_bash_tables();

// For zsh: the file _tubectl, for a directory of fpath.
std::string tubectl_zsh_completion();

}  // namespace tubed::docs
