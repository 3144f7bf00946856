// The command line: flags in, a plan for the start out.
//
// The rows of config/table.h define all settings and flags. Reads no file and prints nothing. No
// exception is thrown to the caller.
//
// Ownership: a CommandLine owns its text, except for the keys, which belong to the table.
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
#include "config/test_mode.h"
#include "config/value.h"

namespace tubed {

// As in <sysexits.h>.
inline constexpr int kExitUsage = 64;
inline constexpr int kExitConfig = 78;

// The task of the process. Every task but `serve` is done once, and then the process exits.
enum class Task : std::uint8_t {
  serve,
  dump,               // print the journal in the task directory
  check,              // verify the journal in the task directory
  salvage,            // copy the readable part of the settings' journal to the task directory
  backup,             // copy the settings' journal to the task directory
  drain,              // put the running server into drain mode
  cluster_bootstrap,  // convert the settings' journal for the first node of a cluster
  cluster_leave,      // convert it for a server without a cluster
  cluster_recover,    // convert it for the only node of a new cluster
};

bool is_cluster_task(Task task);

// The flags as values, each checked by itself. load_settings() applies them after the file.
struct CommandLine {
  std::string config_file;  // empty: no file
  bool check_config = false;
  bool print_config = false;
  Task task = Task::serve;
  std::string task_directory;  // empty: the task needs no directory
  bool accepts_loss = false;   // always with the task cluster_recover
  std::optional<TestModeOptions> test_mode;
  std::vector<std::string> warnings;  // one line each, for the log

  // Key and value, in the order of the flags: the last value of a key takes effect.
  std::vector<std::pair<std::string_view, config::Value>> settings;
  std::vector<Listen> listeners;      // if any, they replace the listeners of the file
  std::optional<std::uint16_t> port;  // of the default address, if no listener is given
  std::size_t log_level_steps = 0;    // to raise log.level by
};

// The command line ends the process: the exit code, and the text to print before.
struct Exit {
  int code = 0;      // 0: `text` goes to stdout; else to stderr
  std::string text;  // with its line end; one line when `code` is not 0
};

// `args` are the arguments without the program's name.
// Compat: beanstalkd's flags keep their meaning, also clustered (-VV) and attached (-p11300).
std::variant<CommandLine, Exit> parse_command_line(std::span<const char* const> args);

// The output of --version: "tubed 2.0.0", with a note if a feature is not built in, and on a second
// line whether cluster mode is built in.
std::string version_text();

// Whether this build has cluster mode.
bool cluster_is_built_in();

}  // namespace tubed
