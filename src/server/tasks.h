// Tasks: what tubed does with a journal instead of serving it: print, verify, salvage, copy.
#pragma once

#include "config/command_line.h"
#include "config/settings.h"

namespace tubed::server {

// Does line.task and prints what it found on stdout. Returns the process's exit code: 0, or
// kExitJournal with a line on stderr.
int run_task(const CommandLine& line, const Settings& settings);

}  // namespace tubed::server
