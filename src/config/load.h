// The settings in force: defaults, then the file, then the flags.
#pragma once

#include "base/result.h"
#include "config/command_line.h"
#include "config/settings.h"

namespace tubed {

// Reads the file the command line names, if it names one. The error is one line that names the
// file, the line, the key and the reason, for the first mistake; a task that lacks a journal to
// work on is one. Called again at a reload.
Result<Settings> load_settings(const CommandLine& line);

}  // namespace tubed
