// The text of --help, from the rows of config/table.h.
//
// The text depends only on the tables.
#pragma once

#include <string>

namespace tubed::config {

// Many lines of at most 100 columns, with the last line end.
std::string help_text();

}  // namespace tubed::config
