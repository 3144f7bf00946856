#include "engine/role.h"

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

}  // namespace tubed
