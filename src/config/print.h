// Settings as TOML.
//
// Used by --print-config and by the generated files, in the order of the table.
#pragma once

#include <string>

#include "config/settings.h"

namespace tubed {

// Every setting, listener, policy and role as TOML that loads back to the same Settings.
// Precondition: the settings came through load_settings(), or are within their rows' bounds.
std::string print_settings(const Settings& settings);

// One policy as a [[policy]] table, after an empty line.
std::string print_policy(const TubePattern& policy);

// One listener as a [[listen]] table, after an empty line.
std::string print_listener(const Listen& listen);

// One role as a [[role]] table, after an empty line.
std::string print_role(const RoleSettings& role);

}  // namespace tubed
