#include "config/command_line.h"

#include <algorithm>

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

Exit usage_error(const std::string& reason) {
  return Exit{kExitUsage, fmt::format("tubed: {}; try tubed --help\n", reason)};
}

Exit value_error(const std::string& flag, std::string_view reason) {
  return Exit{kExitConfig, fmt::format("tubed: {}: {}\n", flag, reason)};
}

// "-z/--limits-job-bytes": one of them was given.
std::string shown_flag(char short_flag, std::string_view long_flag) {
  if (!short_flag) return std::string(long_flag);
  if (long_flag.empty()) return fmt::format("-{}", short_flag);
  return fmt::format("-{}/{}", short_flag, long_flag);
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
    }
    for (const auto& row : config::settings_table()) {
      const auto names = declared_names(row.short_flag, row.flag());
      settings_.push_back(add_argument(names, config::placeholder(row.type)));
    }
  }

  std::optional<Exit> parse(std::span<const char* const> args) {
    // CLI11 takes the last argument first.
    std::vector<std::string> reversed(args.rbegin(), args.rend());
    try {
      app_.parse(std::move(reversed));
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
  const std::vector<std::string>& setting_texts(std::size_t setting) const {
    return settings_[setting]->results();
  }

 private:
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
  std::vector<CLI::Option*> options_;   // of options_table(), one each
  std::vector<CLI::Option*> settings_;  // of settings_table(), one each
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
  for (const auto action : {Action::help, Action::version, Action::refused}) {
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (options[i].action != action || flags.count(i) == 0) continue;
      if (action == Action::help) return Exit{0, config::help_text()};
      if (action == Action::version) return Exit{0, version_line() + "\n"};
      return value_error(options[i].names(), in_a_line(options[i].doc));
    }
  }
  return std::nullopt;
}

std::optional<Exit> take_settings(const Flags& flags, CommandLine& line) {
  const auto rows = config::settings_table();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    // All of them must be good; the last one counts.
    for (const auto& text : flags.setting_texts(i)) {
      const auto value = config::value_from_text(rows[i].type, text);
      const auto flag = shown_flag(rows[i].short_flag, rows[i].flag());
      if (!value) return value_error(flag, value.error().message);
      line.settings.emplace_back(rows[i].key, value.value());
    }
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

std::optional<Exit> take_option(const Flags& flags, std::size_t i, CommandLine& line) {
  const auto& row = config::options_table()[i];
  const auto& texts = flags.texts(i);
  const auto flag = shown_flag(row.short_flag, row.long_flag);
  std::optional<Exit> exit;
  switch (row.action) {
    case Action::help:
    case Action::version:
    case Action::refused:
      break;  // early_exit()
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

}  // namespace

std::string version_line() {
  return "tubed " TUBED_VERSION;
}

std::variant<CommandLine, Exit> parse_command_line(std::span<const char* const> args) {
  try {
    Flags flags;
    if (auto exit = flags.parse(args)) return *exit;
    if (auto exit = early_exit(flags)) return *exit;
    CommandLine line;
    if (auto exit = take_options(flags, line)) return *exit;
    if (auto exit = take_settings(flags, line)) return *exit;
    return line;
  } catch (const std::exception& error) {
    return usage_error(config::printable(error.what()));
  }
}

}  // namespace tubed
