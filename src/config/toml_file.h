// The configuration file: TOML in, settings out.
//
// Keys are looked up in config/table.h. No exception is thrown to the caller.
//
// A file has 1 MiB at most. Cost: proportional to the file, with a search of the table for each
// key.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/settings.h"

namespace tubed::config {

// The lines of the file that assign settings.
struct FileLines {
  std::map<std::string, std::uint32_t, std::less<>> keys;  // by key
  std::vector<std::uint32_t> listeners;  // of the address of each listener, in the file's order
  std::vector<std::uint32_t> policies;   // of each policy, in the file's order
  std::vector<std::uint32_t> roles;      // of each role, in the file's order
};

// Applies the file to `settings`. Replaces settings.listeners, the policies and the roles by those
// in the file, which may be empty. The error is one line, "FILE:LINE: KEY: REASON", for the first
// mistake in the file.
Result<void> read_toml_file(const std::string& file, Settings& settings, FileLines& lines);

// The same for the contents of a file; `file` is its name in errors.
Result<void> read_toml(std::string_view contents, const std::string& file, Settings& settings,
                       FileLines& lines);

}  // namespace tubed::config
