// One configuration file: TOML in, settings out. config/drop_ins.h lists the files that belong
// together.
//
// Keys are looked up in config/table.h. No exception is thrown to the caller.
//
// A file has 1 MiB at most. Cost: proportional to the file, with a search of the table for each
// key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "config/settings.h"

namespace tubed::config {

// A line of one of the files.
struct FileLine {
  std::size_t file = 0;  // index into FileLines::files
  std::uint32_t line = 0;
};

// The lines of the files that assign settings.
struct FileLines {
  std::vector<std::string> files;                     // in the order in which they were read
  std::map<std::string, FileLine, std::less<>> keys;  // by key: the last line that sets it
  std::vector<FileLine> listeners;  // of the address of each listener, in the order of Settings
  std::vector<FileLine> policies;   // of each policy, in the same order
  std::vector<FileLine> roles;      // of each role, in the same order

  std::string place(FileLine at) const;  // "FILE:LINE"
};

// Applies the file to `settings`: it replaces the values of its keys, and adds its listeners,
// policies and roles. The error is one line, "FILE:LINE: KEY: REASON", for the first mistake in the
// file; a listener, policy or role that an earlier file has already is a mistake. On an error,
// `settings` and `lines` have a part of the file.
Result<void> read_toml_file(const std::string& file, Settings& settings, FileLines& lines);

}  // namespace tubed::config
