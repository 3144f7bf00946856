// The checks of the settings of a node of a cluster, among each other and with the other settings.
//
// Pure. Each error is one line that begins with the origin of a setting.
#pragma once

#include "base/result.h"
#include "config/command_line.h"
#include "config/places.h"
#include "config/settings.h"

namespace tubed::config {

// Fails in a build without cluster mode if the settings or the task are for a cluster. Default
// values are accepted: such a build reads the output of --print-config.
Result<void> refuse_cluster(const CommandLine& line, const Settings& settings,
                            const Places& places);

// True if the node has an address that needs a secret or TLS, and does not have it. O(1).
bool is_exposed(const ClusterSettings& cluster);

// The error names the first mistake. Precondition: `settings.listeners` is complete.
Result<void> check_cluster(const CommandLine& line, const Settings& settings, const Places& places);

}  // namespace tubed::config
