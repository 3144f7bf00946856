// The settings in force as JSON, for the API.
#pragma once

#include <string>

#include "config/settings.h"

namespace tubed::http {

// {"settings":[{"key","value","default","changed","reloadable"},…]}: each setting, and then the
// listeners, policies and roles as they are in a file of settings. O(settings).
std::string settings_json(const Settings& settings);

}  // namespace tubed::http
