// The settings in force: defaults, then the file, then the flags.
//
// Reads one file and changes no global state: a failed reload leaves the running settings
// unchanged.
#pragma once

#include "base/result.h"
#include "config/command_line.h"
#include "config/settings.h"

namespace tubed {

// Reads the file that the command line names, if any, and applies the flags. The error is one line
// with file, line, key and reason, for the first mistake; a task without the journal that it needs
// is a mistake. A reload calls it again. `cluster_built_in`: of this build; the tests try both.
Result<Settings> load_settings(const CommandLine& line,
                               bool cluster_built_in = cluster_is_built_in());

}  // namespace tubed
