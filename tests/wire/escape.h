// Conversion between bytes and their form in a transcript.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tubed::wire {

// Resolves \r \n \t \0 \xNN \\ \{. An unknown or unfinished escape is an error.
Result<std::string> unescape(std::string_view text);

// `bytes` quoted and with escapes, for messages. The middle of a very long text is left out.
std::string shown(std::string_view bytes);

}  // namespace tubed::wire
