// The flags of a command line, cut apart: the row of each, and the text of its argument.
//
// The rows of config/table.h define the flags; the caller decides what they mean.
//
// Cost: proportional to the number of flags, plus a suggestion for the first unknown flag.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/table.h"

namespace tubed::config {

// One flag as it was given. Exactly one of `option` and `setting` is its row.
struct GivenFlag {
  const Option* option = nullptr;
  const Setting* setting = nullptr;
  std::string_view text;  // its argument; empty for a switch. Points into the command line.
};

// The flags in their order. `args` are the arguments without the program's name. The error is the
// reason only: the first argument that is no flag, an unknown flag, a flag without its argument, or
// a switch with one. Not for two threads at once: getopt_long(3) has global state.
Result<std::vector<GivenFlag>> split_flags(std::span<const char* const> args);

}  // namespace tubed::config
