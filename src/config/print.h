// Settings as TOML: those in force, and the files to start from.
#pragma once

#include <string>

#include "config/settings.h"

namespace tubed {

// Every setting and listener as TOML that loads back to the same Settings.
// Precondition: the settings came through load_settings(), or are within their rows' bounds.
std::string print_settings(const Settings& settings);

// A tubed.toml in which every key stands commented out, with its default and what it does. It
// loads to the defaults.
std::string default_config();

// The same for the packages: what their service needs is not commented out.
std::string packaged_config();

}  // namespace tubed
