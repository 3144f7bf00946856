// Bytes as a transcript writes them, and back.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tubed::wire {

// Resolves \r \n \t \0 \xNN \\ \{. An unknown or unfinished escape is an error.
Result<std::string> unescape(std::string_view text);

// `bytes` quoted, with escapes, for a person; the middle of a very long one is left out.
std::string shown(std::string_view bytes);

}  // namespace tubed::wire
