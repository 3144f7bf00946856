// A reload: the changes that new settings make in a running process.
//
// Pure: it compares two values; the server applies the result. Cost: one comparison per row.
#pragma once

#include <string>
#include <vector>

#include "config/settings.h"

namespace tubed {

struct ReloadPlan {
  std::vector<std::string> changed;        // keys that take effect now
  std::vector<std::string> needs_restart;  // keys, and "listen", that differ and are not applied
  Settings next;                           // the settings to use
};

// `next` is `current` with the reloadable settings of `fresh`.
ReloadPlan plan_reload(const Settings& current, const Settings& fresh);

}  // namespace tubed
