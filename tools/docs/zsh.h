// One option in a completion script for zsh, as _arguments takes it [zshcompsys(1)].
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tubed::docs {

struct ZshOption {
  const std::vector<std::string>& names;
  bool takes_argument = false;
  bool repeats = false;
  std::string_view description;
  std::string action;  // ":name:candidates" of the argument; empty for a flag
};

// The specification, in single quotes where zsh needs them.
std::string zsh_option(const ZshOption& option);

// `text` for a place in single quotes where the characters of `special` would end it.
std::string zsh_quoted(std::string_view text, std::string_view special);

}  // namespace tubed::docs
