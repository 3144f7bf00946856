// The flags that are not settings: how they are written, and their tasks.
#include "config/options.h"

#include <string>

#include <fmt/format.h>

namespace tubed::config {

std::string Option::names() const {
  std::string result;
  if (short_flag) result = fmt::format("-{}", short_flag);
  if (!long_flag.empty()) result += fmt::format("{}{}", result.empty() ? "" : ", ", long_flag);
  if (argument.empty()) return result;
  result += argument_is_optional ? fmt::format("[={}]", argument) : fmt::format(" {}", argument);
  return result;
}

std::span<const Option> options_table() {
  return kOptions;
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
    case Action::cluster_bootstrap:
      return Task::cluster_bootstrap;
    case Action::cluster_leave:
      return Task::cluster_leave;
    case Action::cluster_recover:
      return Task::cluster_recover;
    default:
      return Task::serve;
  }
}

std::string shown_flag(char short_flag, std::string_view long_flag) {
  if (!short_flag) return std::string(long_flag);
  if (long_flag.empty()) return fmt::format("-{}", short_flag);
  return fmt::format("-{}/{}", short_flag, long_flag);
}

}  // namespace tubed::config
