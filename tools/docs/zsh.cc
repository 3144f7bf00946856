#include "tools/docs/zsh.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tubed::docs {

std::string zsh_quoted(std::string_view text, std::string_view special) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      if (c == '\\' || special.find(c) != special.npos) result += '\\';
      result += c;
    }
  }
  return result;
}

std::string zsh_option(const ZshOption& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) {
    // "--option=" also accepts its argument after a space, "-o+" also without a space.
    const char* const suffix = !option.takes_argument ? "" : name.starts_with("--") ? "=" : "+";
    names.push_back(name + suffix);
  }
  std::string result;
  if (option.repeats) {
    result = "'*'";
  } else if (names.size() > 1) {
    result = fmt::format("'({})'", fmt::join(option.names, " "));
  }
  result += names.size() > 1 ? fmt::format("{{{}}}", fmt::join(names, ","))
                             : fmt::format("'{}'", names.front());
  return result + fmt::format("'[{}]{}'", zsh_quoted(option.description, "[]"), option.action);
}

}  // namespace tubed::docs
