// Places: the origin of each setting, for errors.
//
// Refers to the command line and the lines of the file, which have to outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "config/command_line.h"
#include "config/toml_file.h"

namespace tubed::config {

// Names the origin of a setting in errors: the flag, the line of the file, or the default.
class Places {
 public:
  Places(const CommandLine& line, const FileLines& lines) : line_(line), lines_(lines) {}

  // At the beginning of an error: "FILE:LINE: KEY" or the flag. For a default, the key alone.
  std::string key(std::string_view key) const;
  // Within an error: "KEY, FILE:LINE", "KEY, FLAG" or "KEY, the default".
  std::string mention(std::string_view key) const;
  // The origin of one of settings.listeners.
  std::string listener(std::size_t index) const;
  // The origin of one of settings.roles.
  std::string role(std::size_t index) const;

 private:
  bool is_flag(std::string_view key) const;
  std::string file_line(std::uint32_t line) const;

  const CommandLine& line_;
  const FileLines& lines_;
};

}  // namespace tubed::config
