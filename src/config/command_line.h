// The command line: flags in, a plan for the start out.
//
// Knows no setting and no flag of its own: both are rows of config/table.h. Reads no file and
// prints nothing. No exception leaves it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "config/settings.h"
#include "config/value.h"

namespace tubed {

// As in <sysexits.h>.
inline constexpr int kExitUsage = 64;
inline constexpr int kExitConfig = 78;

// What the process does; all but serving is done once.
enum class Task : std::uint8_t {
  serve,
  dump,     // print the journal there
  check,    // verify the journal there
  salvage,  // copy what can be read of the journal of the settings to there
  backup,   // copy the journal of the settings to there
  drain,    // put the server of the settings into drain mode
};

// What the flags said, checked one by one. load_settings() puts it over the file.
struct CommandLine {
  std::string config_file;  // empty: there is none
  bool check_config = false;
  bool print_config = false;
  Task task = Task::serve;
  std::string task_directory;         // of a task that has "there"
  std::vector<std::string> warnings;  // one line each, for the log

  // Key and value, in the order of the flags: the last one of a key counts.
  std::vector<std::pair<std::string_view, config::Value>> settings;
  std::vector<Listen> listeners;      // not empty: they replace the file's
  std::optional<std::uint16_t> port;  // of the default address, when there are no listeners
  std::size_t log_level_steps = 0;    // to raise log.level by
};

// The process has said all it has to say.
struct Exit {
  int code = 0;      // 0: `text` goes to stdout; else to stderr
  std::string text;  // with its line end; one line when `code` is not 0
};

// `args` are the arguments without the program's name.
// Compat: beanstalkd's flags are taken with their meaning, clustered (-VV) and attached (-p11300).
std::variant<CommandLine, Exit> parse_command_line(std::span<const char* const> args);

// "tubed 2.0.0", and what this build lacks.
std::string version_line();

}  // namespace tubed
