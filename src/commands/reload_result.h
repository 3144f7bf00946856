// ReloadResult: the changes that a reload of the settings has made, as its clients see them.
// [extension: reload]
#pragma once

#include <string>
#include <vector>

namespace tubed::commands {

struct ReloadResult {
  std::vector<std::string> changed = {};        // keys that have changed
  std::vector<std::string> needs_restart = {};  // keys that differ, and are not applied
  std::string refusal = {};                     // not empty: nothing has changed, for this reason
};

}  // namespace tubed::commands
