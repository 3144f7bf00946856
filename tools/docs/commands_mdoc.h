// The list of commands in tubed-protocol(7), generated from the command table.
//
// The rest of that page is written by hand; the list goes between two marker lines.
#pragma once

#include <string>

namespace tubed::docs {

std::string commands_mdoc();

}  // namespace tubed::docs
