#include "config/command_line.h"

#include <algorithm>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "config/help.h"
#include "config/suggestion.h"
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

// The spelling CLI11 wants for the names of one flag.
std::string declared_names(char short_flag, std::string_view long_flag) {
  if (!short_flag) return std::string(long_flag);
  if (long_flag.empty()) return fmt::format("-{}", short_flag);
  return fmt::format("-{},{}", short_flag, long_flag);
}

// Cuts the arguments into flags and their texts; what they mean is decided outside.
class Flags {
 public:
  Flags() {
    app_.set_help_flag();
    app_.allow_extras();
    for (const auto& row : config::options_table()) {
      const auto names = declared_names(row.short_flag, row.long_flag);
      options_.push_back(row.argument.empty() ? add_switch(names)
                                              : add_argument(names, std::string(row.argument)));
      rows_[options_.back()].option = &row;
    }
    for (const auto& row : config::settings_table()) {
      const auto names = declared_names(row.short_flag, row.flag());
      rows_[add_argument(names, config::placeholder(row.type))].setting = &row;
    }
  }

  std::optional<Exit> parse(std::span<const char* const> args) {
    try {
      app_.parse(reversed(args));
    } catch (const CLI::Error& error) {
      return usage_error(config::printable(error.what()));
    }
    const auto rest = app_.remaining();
    if (rest.empty()) return std::nullopt;
    return usage_error(unknown(rest.front()));
  }

  std::size_t count(std::size_t option) const { return options_[option]->count(); }
  const std::vector<std::string>& texts(std::size_t option) const {
    return options_[option]->results();
  }

  // One flag as it was given; it is of one of the two tables.
  struct Given {
    const Option* option = nullptr;
    const Setting* setting = nullptr;
    std::string_view text;  // empty for a switch
  };
  std::vector<Given> in_order() const {
    std::vector<Given> result;
    std::map<const CLI::Option*, std::size_t> seen;
    for (const auto* flag : app_.parse_order()) {
      auto given = rows_.at(flag);
      const auto nth = seen[flag]++;
      const bool is_switch = given.option && given.option->argument.empty();
      if (!is_switch) given.text = flag->results().at(nth);
      result.push_back(given);
    }
    return result;
  }

 private:
  // CLI11 takes the last argument first. For "--flag=" it would take what follows.
  std::vector<std::string> reversed(std::span<const char* const> args) const {
    std::vector<std::string> result;
    for (auto arg = args.rbegin(); arg != args.rend(); ++arg) {
      const std::string_view text = *arg;
      const auto name = std::string(text.substr(0, text.size() - (text.ends_with('=') ? 1 : 0)));
      if (name.size() < text.size() && name.starts_with("--") && app_.get_option_no_throw(name)) {
        result.emplace_back();
        result.push_back(name);
      } else {
        result.emplace_back(text);
      }
    }
    return result;
  }

  // Each occurrence takes exactly one text, so that brackets and commas mean nothing.
  CLI::Option* add_argument(const std::string& names, const std::string& placeholder) {
    return app_.add_option(names)
        ->type_name(placeholder)
        ->expected(1)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  CLI::Option* add_switch(const std::string& names) {
    return app_.add_flag(names)->disable_flag_override()->multi_option_policy(
        CLI::MultiOptionPolicy::TakeAll);
  }

  static std::string unknown(const std::string& argument) {
    if (!argument.starts_with('-')) {
      return fmt::format("unexpected argument {}", config::quoted(argument));
    }
    const auto flag = argument.substr(0, argument.find('='));
    std::vector<std::string> candidates;
    for (const auto& row : config::settings_table()) candidates.push_back(row.flag());
    for (const auto& row : config::options_table()) {
      if (!row.long_flag.empty()) candidates.emplace_back(row.long_flag);
    }
    const auto hint = config::did_you_mean(flag, candidates);
    return fmt::format("unknown flag {}{}", config::printable(flag),
                       hint.empty() ? "" : fmt::format(" ({})", hint));
  }

  CLI::App app_;
  std::vector<CLI::Option*> options_;  // of options_table(), one each
  std::map<const CLI::Option*, Given> rows_;
};

// "Ignored: …" as the rest of a line.
std::string in_a_line(std::string_view sentence) {
  std::string text(sentence.substr(0, sentence.size() - (sentence.ends_with('.') ? 1 : 0)));
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] = static_cast<char>(text[0] + 32);
  return text;
}

// The flags that end the process whatever else was given, help first.
std::optional<Exit> early_exit(const Flags& flags) {
  const auto options = config::options_table();
  for (const auto action : {Action::help, Action::version}) {
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (options[i].action != action || flags.count(i) == 0) continue;
      if (action == Action::help) return Exit{0, config::help_text()};
      return Exit{0, version_line() + "\n"};
    }
  }
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

// A setting in beanstalkd's spelling: digits whose unit the row knows, or nothing.
std::optional<Exit> take_other_spelling(const Option& row, std::string_view text,
                                        CommandLine& line) {
  const auto flag = shown_flag(row.short_flag, row.long_flag);
  const bool is_number = text.find_first_not_of("0123456789") == std::string_view::npos;
  if (!row.argument.empty() && (text.empty() || !is_number)) {
    return value_error(flag, fmt::format("{} is not a whole number", config::quoted(text)));
  }
  const auto& setting = setting_of(row.setting);
  const auto value = config::value_from_text(setting.type, fmt::format("{}{}", text, row.value));
  if (!value) return value_error(flag, value.error().message);
  line.settings.emplace_back(setting.key, value.value());
  return std::nullopt;
}

// All of them must be good, also those that a later one replaces.
std::optional<Exit> take_settings(const Flags& flags, CommandLine& line) {
  for (const auto& given : flags.in_order()) {
    std::optional<Exit> exit;
    if (given.setting) exit = take_setting(*given.setting, given.text, line);
    if (given.option && given.option->action == Action::sets) {
      exit = take_other_spelling(*given.option, given.text, line);
    }
    if (exit) return exit;
  }
  return std::nullopt;
}

std::optional<Exit> take_port(const std::string& flag, const std::string& text, CommandLine& line) {
  const auto port = parse_port(text);
  if (!port) return value_error(flag, port.error().message);
  line.port = port.value();
  return std::nullopt;
}

std::optional<Exit> take_listener(const std::string& flag, const std::string& text,
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

Task task_of(Action action) {
  switch (action) {
    case Action::dump:
      return Task::dump;
    case Action::check:
      return Task::check;
    case Action::salvage:
      return Task::salvage;
    case Action::backup:
      return Task::backup;
    case Action::drain:
      return Task::drain;
    default:
      return Task::serve;
  }
}

std::optional<Exit> take_task(const Option& row, const std::vector<std::string>& texts,
                              CommandLine& line) {
  const std::string flag(row.long_flag);
  if (line.task != Task::serve || texts.size() > 1) {
    return usage_error(fmt::format("{}: only one task can be done at a time", flag));
  }
  line.task = task_of(row.action);
  if (row.argument.empty()) return std::nullopt;
  if (texts.front().empty()) return value_error(flag, "the name of the directory is empty");
  if (!config::is_plain_text(texts.front())) {
    return value_error(flag, fmt::format("{} has control characters or is not UTF-8",
                                         config::quoted(texts.front())));
  }
  line.task_directory = texts.front();
  return std::nullopt;
}

std::optional<Exit> take_option(const Flags& flags, std::size_t i, CommandLine& line) {
  const auto& row = config::options_table()[i];
  const auto& texts = flags.texts(i);
  const auto flag = shown_flag(row.short_flag, row.long_flag);
  std::optional<Exit> exit;
  switch (row.action) {
    case Action::help:
    case Action::version:
      break;  // early_exit()
    case Action::sets:
      break;  // take_settings()
    case Action::dump:
    case Action::check:
    case Action::salvage:
    case Action::backup:
    case Action::drain:
      exit = take_task(row, texts, line);
      break;
    case Action::config_file:
      line.config_file = texts.back();
      // An unset variable of a script must not silently mean the defaults.
      if (line.config_file.empty()) exit = value_error(flag, "the name of the file is empty");
      break;
    case Action::check_config:
      line.check_config = true;
      break;
    case Action::print_config:
      line.print_config = true;
      break;
    case Action::louder:
      line.louder = flags.count(i);
      break;
    case Action::ignored:
      line.warnings.push_back(fmt::format("{}: {}", flag, in_a_line(row.doc)));
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
  const auto options = config::options_table();
  // The port first: it completes the addresses.
  for (const bool is_port : {true, false}) {
    for (std::size_t i = 0; i < options.size(); ++i) {
      if ((options[i].action == Action::port) != is_port || flags.count(i) == 0) continue;
      if (auto exit = take_option(flags, i, line)) return exit;
    }
  }
  return std::nullopt;
}

// A task that needs a setting: without a file to look into, its flag must be there.
std::optional<Exit> missing_setting(const CommandLine& line) {
  if (line.task == Task::serve || !line.config_file.empty()) return std::nullopt;
  const auto options = config::options_table();
  const auto task = [](const Option& row) { return task_of(row.action); };
  const auto& row = *std::ranges::find(options, line.task, task);
  const auto key = [](const auto& setting) { return setting.first; };
  if (row.setting.empty() || std::ranges::count(line.settings, row.setting, key) > 0) {
    return std::nullopt;
  }
  return usage_error(
      fmt::format("{} needs {} as well", row.long_flag, shown_flag(setting_of(row.setting))));
}

}  // namespace

std::string version_line() {
  return "tubed " TUBED_VERSION TUBED_BUILD_NOTE;
}

std::variant<CommandLine, Exit> parse_command_line(std::span<const char* const> args) {
  try {
    Flags flags;
    if (auto exit = flags.parse(args)) return *exit;
    if (auto exit = early_exit(flags)) return *exit;
    CommandLine line;
    if (auto exit = take_options(flags, line)) return *exit;
    if (auto exit = take_settings(flags, line)) return *exit;
    if (auto exit = missing_setting(line)) return *exit;
    return line;
  } catch (const std::exception& error) {
    return usage_error(config::printable(error.what()));
  }
}

}  // namespace tubed
