// The end of a line.
#pragma once

#include <string_view>

namespace tubed::commands {

inline constexpr std::string_view kLineEnd = "\r\n";

// As text.find(kLineEnd), in fewer steps if the first CR ends the line.
std::size_t find_line_end(std::string_view text);

}  // namespace tubed::commands
