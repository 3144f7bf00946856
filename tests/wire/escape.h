// Conversion between bytes and their form in a transcript.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tubed::wire {

// Resolves \r \n \t \0 \xNN \\ \{. Fails for an unknown or unfinished escape.
Result<std::string> unescape(std::string_view text);

// Returns `bytes` quoted and escaped, for messages. Leaves out the middle of a very long text.
std::string shown(std::string_view bytes);

}  // namespace tubed::wire
