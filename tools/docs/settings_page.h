// The settings' documentation, generated from the rows of config/table.h.
//
// The package installs the page, so its links lead only to pages that are installed as well.
#pragma once

#include <string>

namespace tubed::docs {

// The page docs/reference/settings.md: settings by section, listeners, flags.
std::string settings_markdown();

}  // namespace tubed::docs
