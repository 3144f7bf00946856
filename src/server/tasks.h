// Tasks: the command line options that work on a journal instead of serving: --dump, --check,
// --salvage and --backup.
#pragma once

#include "config/command_line.h"
#include "config/settings.h"

namespace tubed::server {

// Runs line.task and prints its results to stdout. Blocks. Returns the exit code of the process: 0,
// or os::kExitJournal with a line on stderr.
int run_task(const CommandLine& line, const Settings& settings);

}  // namespace tubed::server
