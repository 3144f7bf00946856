// The reference pages of commands, test verbs, stats and metrics, generated from their tables.
//
// The functions are pure. The test generated_docs compares their output with the pages in
// the tree.
#pragma once

#include <string>

#include "commands/command.h"

namespace tubed::docs {

// A sentence on who may use the command.
std::string sentence_on_family(const commands::Command& command);

std::string commands_markdown();   // docs/reference/commands.md
std::string test_mode_markdown();  // docs/reference/test-mode.md
std::string stats_markdown();      // docs/reference/stats.md
std::string metrics_markdown();    // docs/reference/metrics.md

}  // namespace tubed::docs
