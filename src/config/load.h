// The settings in force: defaults, then the file, then its drop-ins, then the flags.
//
// Reads files and changes no global state: a failed reload leaves the running settings unchanged.
#pragma once

#include "base/result.h"
#include "config/command_line.h"
#include "config/settings.h"
#include "config/toml_file.h"

namespace tubed {

struct LoadedSettings {
  Settings settings;
  config::FileLines lines;  // the origins of the settings that files set
};

// Reads the file that the command line names, if any, and its drop-ins (config/drop_ins.h), and
// applies the flags. The error is one line with file, line, key and reason, for the first mistake;
// a task without the journal that it needs is a mistake. `cluster_built_in`: of this build; the
// tests try both.
Result<LoadedSettings> load_with_lines(const CommandLine& line,
                                       bool cluster_built_in = cluster_is_built_in());

// The settings alone. A reload calls it again.
Result<Settings> load_settings(const CommandLine& line,
                               bool cluster_built_in = cluster_is_built_in());

}  // namespace tubed
