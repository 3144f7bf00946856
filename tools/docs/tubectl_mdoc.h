// The manual page of tubectl: prose that is written by hand, and the heads of its options, which
// come from the rows of tubectl.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tubed::docs {

// The page with the head of each option (".It Fl t , Fl -tube Ar TUBE") as its row says. The Error
// names an option of the page without a row, or a row that the section of its subcommand does not
// mention. Options that many subcommands share, as --json, may be described before the sections.
// O(lines * rows).
Result<std::string> tubectl_man_page(std::string_view page);

}  // namespace tubed::docs
