// Places: the origin of each setting, for errors and --print-config.
//
// Refers to the command line and the lines of the files, which have to outlive it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "config/command_line.h"
#include "config/toml_file.h"

namespace tubed::config {

// Names the origin of a setting: the flag, the line of a file, or the default.
class Places {
 public:
  Places(const CommandLine& line, const FileLines& lines) : line_(line), lines_(lines) {}

  // At the beginning of an error: "FILE:LINE: KEY" or the flag. For a default, the key alone.
  std::string key(std::string_view key) const;
  // Within an error: "KEY, ORIGIN".
  std::string mention(std::string_view key) const;
  // The origin alone: "FILE:LINE", the flag or "the default".
  std::string origin(std::string_view key) const;
  // The origin of one of settings.listeners.
  std::string listener(std::size_t index) const;
  // The origin of one of settings.roles.
  std::string role(std::size_t index) const;
  // The origin of one of settings.policies.
  std::string policy(std::size_t index) const;
  // The files that were read, in their order.
  const std::vector<std::string>& files() const { return lines_.files; }

 private:
  bool is_flag(std::string_view key) const;

  const CommandLine& line_;
  const FileLines& lines_;
};

}  // namespace tubed::config
