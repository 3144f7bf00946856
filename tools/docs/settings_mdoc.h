// The settings and flags in the manual pages, in mdoc(7), generated from the rows of
// config/table.h.
//
// mdoc(7) is the macro language of the manual pages. The functions return complete lines.
#pragma once

#include <string>

namespace tubed::docs {

// The whole page tubed.toml(5).
std::string settings_man_page();

// The list of flags in tubed(8).
std::string options_mdoc();

}  // namespace tubed::docs
