// Completion of tubed's flags in a shell, generated from the rows of config/table.h.
//
// The flags do not depend on a running server, so the scripts are complete as generated.
#pragma once

#include <string>

namespace tubed::docs {

// For bash, to be sourced. Works without the package bash-completion.
std::string bash_completion();

// For zsh, to be installed as _tubed in a directory of fpath.
std::string zsh_completion();

}  // namespace tubed::docs
