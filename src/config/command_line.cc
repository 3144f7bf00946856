// How a command line becomes a CommandLine:
//
// 1. split_flags() cuts the arguments into flags and their arguments (config/flags.h). A usage
//    mistake ends with exit code 64 here.
// 2. early_exit() handles --help and --version, whatever other flags are given.
// 3. take_options() handles the flags that are no settings, in the order of their table: -p before
//    -l, as the port completes the addresses.
// 4. take_settings() converts the arguments of the flags that set a setting, in the order of the
//    command line: the last flag of a setting takes effect. A bad value ends with exit code 78,
//    even if a later flag replaces it.
// 5. missing_setting() refuses a task whose journal or node is given neither by a flag nor by a
//    file, and check_recovery() a recovery whose loss is not confirmed.
// 6. take_test_mode() handles --test-mode and the flags that need it, and refuses those that it
//    excludes.
#include "config/command_line.h"

#include <algorithm>

#include <fmt/format.h>

#include "config/flags.h"
#include "config/help.h"
#include "config/table.h"

namespace tubed {
namespace {

using config::Action;
using config::Option;
using config::Setting;
using config::shown_flag;

Exit usage_error(const std::string& reason) {
  return Exit{kExitUsage, fmt::format("tubed: {}; try tubed --help\n", reason)};
}

Exit value_error(const std::string& flag, std::string_view reason) {
  return Exit{kExitConfig, fmt::format("tubed: {}: {}\n", flag, reason)};
}

using Flags = std::vector<config::GivenFlag>;

// The argument of each occurrence of a flag, in order. Those of a switch are empty.
std::vector<std::string_view> texts_of(const Flags& flags, const Option& row) {
  std::vector<std::string_view> result;
  for (const auto& flag : flags) {
    if (flag.option == &row) result.push_back(flag.text);
  }
  return result;
}

// A sentence such as "Ignored: …" as the end of a log line.
std::string as_clause(std::string_view sentence) {
  std::string text(sentence.substr(0, sentence.size() - (sentence.ends_with('.') ? 1 : 0)));
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] = static_cast<char>(text[0] + 32);
  return text;
}

// --help and --version, in this order of precedence.
std::optional<Exit> early_exit(const Flags& flags) {
  const auto given = [&](Action action) {
    return std::ranges::any_of(
        flags, [&](const auto& flag) { return flag.option && flag.option->action == action; });
  };
  if (given(Action::help)) return Exit{0, config::help_text()};
  if (given(Action::version)) return Exit{0, version_text()};
  return std::nullopt;
}

const Setting& setting_of(std::string_view key) {
  return *std::ranges::find(config::settings_table(), key, &Setting::key);
}

std::optional<Exit> take_setting(const Setting& row, std::string_view text, CommandLine& line) {
  if (text.empty() && !row.takes_empty_flag) {
    return value_error(shown_flag(row), "its argument is empty");
  }
  const auto value = config::value_from_text(row.type, text);
  if (!value) return value_error(shown_flag(row), value.error().message);
  line.settings.emplace_back(row.key, value.value());
  return std::nullopt;
}

// A setting in beanstalkd's spelling: an argument of digits, whose unit is in the row, or none.
std::optional<Exit> take_other_spelling(const Option& row, std::string_view text,
                                        CommandLine& line) {
  const auto flag = shown_flag(row.short_flag, row.long_flag);
  const bool is_number = text.find_first_not_of("0123456789") == std::string_view::npos;
  if (!row.argument.empty() && (text.empty() || !is_number)) {
    return value_error(flag, fmt::format("{} is not a whole number", config::in_quotes(text)));
  }
  const auto& setting = setting_of(row.setting);
  const auto value = config::value_from_text(setting.type, fmt::format("{}{}", text, row.value));
  if (!value) return value_error(flag, value.error().message);
  line.settings.emplace_back(setting.key, value.value());
  return std::nullopt;
}

// Checks every flag, also a flag that a later one replaces.
std::optional<Exit> take_settings(const Flags& flags, CommandLine& line) {
  for (const auto& given : flags) {
    std::optional<Exit> exit;
    if (given.setting) exit = take_setting(*given.setting, given.text, line);
    if (given.option && given.option->action == Action::sets) {
      exit = take_other_spelling(*given.option, given.text, line);
    }
    if (exit) return exit;
  }
  return std::nullopt;
}

std::optional<Exit> take_port(const std::string& flag, std::string_view text, CommandLine& line) {
  const auto port = parse_port(text);
  if (!port) return value_error(flag, port.error().message);
  line.port = port.value();
  return std::nullopt;
}

// Two addresses that the kernel could not open together are refused here, with the flag's name.
std::optional<Exit> take_listener(const std::string& flag, std::string_view text,
                                  CommandLine& line) {
  const auto listen = parse_listen(text, line.port.value_or(kDefaultPort));
  if (!listen) return value_error(flag, listen.error().message);
  for (const auto& earlier : line.listeners) {
    if (!clash(earlier, listen.value())) continue;
    return value_error(flag, fmt::format("{} is given twice", to_string(earlier)));
  }
  line.listeners.push_back(listen.value());
  return std::nullopt;
}

bool is_of_test_mode(Action action) {
  return action == Action::test_mode || action == Action::no_stdin ||
         action == Action::address_file || action == Action::preload;
}

// --test-mode and the flags that need it. The others may come first on the command line.
class TestModeFlags {
 public:
  std::optional<Exit> take(const Option& row, std::string_view text, CommandLine& line) {
    if (row.action == Action::test_mode) return take_clock(text, line);
    if (row.action == Action::no_stdin) {
      options_.use_stdin = false;
    } else {
      if (text.empty()) return value_error(std::string(row.long_flag), "the name is empty");
      (row.action == Action::preload ? options_.preload : options_.address_file) = text;
    }
    if (first_.empty()) first_ = row.long_flag;
    return std::nullopt;
  }

  // All flags are taken.
  std::optional<Exit> finish(CommandLine& line) const {
    if (!line.test_mode) {
      if (first_.empty()) return std::nullopt;
      return usage_error(fmt::format("{} needs --test-mode as well", first_));
    }
    if (!line.config_file.empty()) {
      return usage_error("--test-mode reads no file: give settings as flags instead of --config");
    }
    if (line.task != Task::serve) return usage_error("--test-mode is no part of a task");
    const TestClock clock = line.test_mode->clock;
    line.test_mode = options_;
    line.test_mode->clock = clock;
    return std::nullopt;
  }

 private:
  static std::optional<Exit> take_clock(std::string_view text, CommandLine& line) {
    const auto name = std::ranges::find(kTestClockNames, text.empty() ? "manual" : text);
    if (name == kTestClockNames.end()) {
      return value_error("--test-mode",
                         fmt::format("{} is none of manual, auto, real", config::in_quotes(text)));
    }
    line.test_mode.emplace().clock = static_cast<TestClock>(name - kTestClockNames.begin());
    return std::nullopt;
  }

  TestModeOptions options_;
  std::string_view first_;  // of the flags that need --test-mode
};

// A second task is refused even if it is the same task.
std::optional<Exit> take_task(const Option& row, const std::vector<std::string_view>& texts,
                              CommandLine& line) {
  const std::string flag(row.long_flag);
  if (line.task != Task::serve || texts.size() > 1) {
    return usage_error(fmt::format("{}: only one task can be done at a time", flag));
  }
  line.task = row.task;
  if (row.argument.empty()) return std::nullopt;
  if (texts.front().empty()) return value_error(flag, "the name of the directory is empty");
  if (!config::is_plain_text(texts.front())) {
    return value_error(flag, fmt::format("{} has control characters or is not UTF-8",
                                         config::in_quotes(texts.front())));
  }
  line.task_directory = texts.front();
  return std::nullopt;
}

std::optional<Exit> take_option(const Option& row, const std::vector<std::string_view>& texts,
                                CommandLine& line) {
  const auto flag = shown_flag(row.short_flag, row.long_flag);
  std::optional<Exit> exit;
  switch (row.action) {
    case Action::help:
    case Action::version:
      break;  // early_exit()
    case Action::sets:
      break;  // take_settings()
    case Action::test_mode:
    case Action::no_stdin:
    case Action::address_file:
    case Action::preload:
      break;  // take_test_mode()
    case Action::task:
      exit = take_task(row, texts, line);
      break;
    case Action::accept_loss:
      line.accepts_loss = true;
      break;
    case Action::config_file:
      line.config_file = texts.back();
      // Scripts pass an empty argument if a variable is unset. That must not mean the defaults.
      if (line.config_file.empty()) exit = value_error(flag, "the name of the file is empty");
      break;
    case Action::check_config:
      line.check_config = true;
      break;
    case Action::print_config:
      line.print_config = true;
      break;
    case Action::raise_log_level:
      line.log_level_steps = texts.size();
      break;
    case Action::ignored:
      line.warnings.push_back(fmt::format("{}: {}", flag, as_clause(row.doc)));
      break;
    case Action::port:
      for (const auto& text : texts) {
        if (!exit) exit = take_port(flag, text, line);
      }
      break;
    case Action::listen:
      for (const auto& text : texts) {
        if (!exit) exit = take_listener(flag, text, line);
      }
      break;
  }
  return exit;
}

std::optional<Exit> take_options(const Flags& flags, CommandLine& line) {
  // -p comes first, as the port completes the addresses of -l.
  for (const bool is_port : {true, false}) {
    for (const auto& row : config::options_table()) {
      const auto texts = texts_of(flags, row);
      if ((row.action == Action::port) != is_port || texts.empty()) continue;
      if (auto exit = take_option(row, texts, line)) return exit;
    }
  }
  return std::nullopt;
}

std::optional<Exit> take_test_mode(const Flags& flags, CommandLine& line) {
  TestModeFlags test_mode;
  for (const auto& given : flags) {
    if (given.option == nullptr || !is_of_test_mode(given.option->action)) continue;
    if (auto exit = test_mode.take(*given.option, given.text, line)) return exit;
  }
  return test_mode.finish(line);
}

// A task that needs a setting: without a file that may contain it, its flag is required.
std::optional<Exit> missing_setting(const CommandLine& line) {
  if (line.task == Task::serve || !line.config_file.empty()) return std::nullopt;
  const auto options = config::options_table();
  const auto task = [](const Option& row) { return row.task; };
  const auto& row = *std::ranges::find(options, line.task, task);
  const auto key = [](const auto& setting) { return setting.first; };
  if (row.setting.empty() || std::ranges::count(line.settings, row.setting, key) > 0) {
    return std::nullopt;
  }
  return usage_error(
      fmt::format("{} needs {} as well", row.long_flag, shown_flag(setting_of(row.setting))));
}

std::optional<Exit> check_recovery(const CommandLine& line) {
  const bool recovers = line.task == Task::cluster_recover;
  if (recovers == line.accepts_loss) return std::nullopt;
  if (!recovers) return usage_error("--i-accept-the-loss needs --cluster-recover as well");
  return usage_error(
      "--cluster-recover loses each change that only the other nodes have, even if it was "
      "acknowledged; if a majority of the nodes is lost for good, give --i-accept-the-loss as "
      "well");
}

}  // namespace

bool is_cluster_task(Task task) {
  return task == Task::cluster_bootstrap || task == Task::cluster_leave ||
         task == Task::cluster_recover;
}

bool cluster_is_built_in() {
  return TUBED_CLUSTER_BUILT_IN != 0;
}

std::string version_text() {
  return "tubed " TUBED_VERSION TUBED_BUILD_NOTE "\ncluster: " TUBED_CLUSTER_NOTE "\n";
}

std::variant<CommandLine, Exit> parse_command_line(std::span<const char* const> args) {
  const auto flags = config::split_flags(args);
  if (!flags) return usage_error(flags.error().message);
  if (auto exit = early_exit(flags.value())) return *exit;
  CommandLine line;
  if (auto exit = take_options(flags.value(), line)) return *exit;
  if (auto exit = take_settings(flags.value(), line)) return *exit;
  if (auto exit = missing_setting(line)) return *exit;
  if (auto exit = check_recovery(line)) return *exit;
  if (auto exit = take_test_mode(flags.value(), line)) return *exit;
  return line;
}

}  // namespace tubed
