// The settings that should be the same on all nodes of a cluster, for a comparison between nodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"

namespace tubed::config {

struct SameSetting {
  std::string_view name;  // its key, or of a table: "policy"
  std::string value;      // canonical: the same text for the same value

  friend bool operator==(const SameSetting&, const SameSetting&) = default;
};

// In the order of the settings: the rows with `same_on_all_nodes`, then "policy" and "role", all
// tables of that name, and "listen", how clients of the [[listen]] tables authenticate and which
// roles they have. Addresses, paths and the contents of files are in none. O(settings).
std::vector<SameSetting> same_settings(const Settings& settings);

}  // namespace tubed::config
