// How much a log says, and in which form. In the order of the words in config/table.cc.
#pragma once

#include <cstdint>

namespace tubed {

enum class LogLevel : std::uint8_t { error, warning, info, debug };

// `auto` is a keyword of C++; in the settings it is "auto".
enum class LogFormat : std::uint8_t { automatic, text, journald, json };

}  // namespace tubed
