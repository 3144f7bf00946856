// The generated pages about commands and stats, made from their tables.
#pragma once

#include <string>

namespace tubed::commands {

std::string commands_markdown();  // docs/reference/commands.md
std::string stats_markdown();     // docs/reference/stats.md
std::string metrics_markdown();   // docs/reference/metrics.md
std::string fuzz_dictionary();    // for libFuzzer: words that a command line is made of

}  // namespace tubed::commands
