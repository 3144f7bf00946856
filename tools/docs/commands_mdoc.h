// The list of commands in tubed-protocol(7), generated from the command table.
#pragma once

#include <string>

namespace tubed::docs {

std::string commands_mdoc();

}  // namespace tubed::docs
