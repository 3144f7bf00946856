// Completion of tubectl in a shell, made from the options that its subcommands have declared.
//
// A TUBE is completed with those that the server has: the scripts run `tubectl tubes --names`, for
// a second at most. A tube's name may be any shell's words, so no script ever evaluates one.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

namespace tubed::tubectl {

// For bash: the functions in packaging/completions/tubectl.bash that tell what there is.
std::string bash_tables(const CLI::App& app);

// For zsh, to stand in a directory of its fpath as _tubectl.
std::string zsh_completion(const CLI::App& app);

}  // namespace tubed::tubectl
