#include "facts/role.h"

#include <algorithm>

#include <fnmatch.h>

namespace tubed {

bool may(const Role& role, Access access) {
  switch (access) {
    case Access::open:
    case Access::any:
      return true;
    case Access::produce:
      return role.produce;
    case Access::work:
      return role.work;
    case Access::inspect:
      return role.inspect;
    case Access::admin:
      return role.admin;
  }
  return false;
}

bool may_use(const Role& role, std::string_view tube) {
  return role.tubes.empty() || std::ranges::any_of(role.tubes, [&](const std::string& pattern) {
           return matches_name(pattern, tube);
         });
}

bool matches_name(const std::string& pattern, std::string_view name) {
  return fnmatch(pattern.c_str(), std::string(name).c_str(), 0) == 0;
}

bool is_tube_pattern(std::string_view pattern) {
  if (pattern.empty() || pattern.front() == '-') return false;
  std::size_t least = 0;  // characters of a name that matches
  while (!pattern.empty()) {
    const char c = pattern.front();
    std::size_t taken = 1;
    if (c == '[') {
      // The first character of a set may be ']', and '!' or '^' before it inverts the set.
      const std::size_t first =
          pattern.size() > 1 && (pattern[1] == '!' || pattern[1] == '^') ? 2 : 1;
      const std::size_t end = pattern.find(']', first + 1);
      if (end == std::string_view::npos) return false;
      taken = end + 1;
    } else {
      if (c == '\\') taken = 2;
      const bool is_star = c == '*' || c == '?';
      if (!is_star && (taken > pattern.size() ||
                       !kNameCharacters[static_cast<unsigned char>(pattern[taken - 1])]))
        return false;
    }
    if (c != '*') ++least;
    pattern.remove_prefix(taken);
  }
  return least <= kMaxTubeNameBytes;
}

}  // namespace tubed
