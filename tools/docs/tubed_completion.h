// Completion of tubed's flags in a shell, generated from the rows of config/table.h.
#pragma once

#include <string>

namespace tubed::docs {

// For bash, to be sourced. Needs nothing but bash.
std::string bash_completion();

// For zsh, to stand in a directory of its fpath as _tubed.
std::string zsh_completion();

}  // namespace tubed::docs
