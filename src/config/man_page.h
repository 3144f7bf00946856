// Parts of the manual pages, in mdoc(7), generated from the rows of config/table.h.
#pragma once

#include <string>
#include <string_view>

namespace tubed {

// The whole page tubed.toml(5).
std::string settings_man_page();

// The list of flags in tubed(8).
std::string options_mdoc();

// Prose as lines of mdoc: each sentence begins a line, and nothing in it is a macro.
std::string mdoc_text(std::string_view prose);

}  // namespace tubed
