// Settings as TOML.
//
// Used by --print-config and by the generated files, in the order of the table.
#pragma once

#include <string>
#include <string_view>

#include "config/places.h"
#include "config/settings.h"

namespace tubed {

// Every setting, listener, policy and role as TOML that loads back to the same Settings.
// Precondition: the settings came through load_settings(), or are within their rows' bounds.
std::string print_settings(const Settings& settings);

// The same with comments: first the files that were read, and after each value and each table its
// origin, "FILE:LINE", the flag or "the default". `places`: of the same settings.
std::string print_settings(const Settings& settings, const config::Places& places);

// One policy as a [[policy]] table, after an empty line. `origin`: a comment after the heading;
// empty: none.
std::string print_policy(const TubePattern& policy, std::string_view origin = {});

// One listener as a [[listen]] table, in the same way.
std::string print_listener(const Listen& listen, std::string_view origin = {});

// One role as a [[role]] table, in the same way.
std::string print_role(const RoleSettings& role, std::string_view origin = {});

}  // namespace tubed
