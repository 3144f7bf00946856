// The verbosity and the format of a log, in the order of the words in config/table.cc.
#pragma once

#include <cstdint>

namespace tubed {

enum class LogLevel : std::uint8_t { error, warning, info, debug };

// `automatic` is "auto" in the settings; `auto` is a keyword of C++.
enum class LogFormat : std::uint8_t { automatic, text, journald, json };

}  // namespace tubed
