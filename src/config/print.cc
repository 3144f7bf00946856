#include "config/print.h"

#include <fmt/format.h>

#include "config/table.h"

namespace tubed {

std::string print_settings(const Settings& settings) {
  std::string result;
  std::string_view section;
  for (const auto& row : config::settings_table()) {
    if (row.section() != section) {
      section = row.section();
      result += fmt::format("\n[{}]\n", section);
    }
    result += fmt::format("{} = {}\n", row.name(), config::to_toml(row.type, row.get(settings)));
  }
  for (const auto& listen : settings.listeners) result += print_listener(listen);
  return result;
}

// Keys without a value are left out: they have no spelling for "not given".
std::string print_listener(const Listen& listen) {
  std::string result = "\n[[listen]]\n";
  for (const auto& row : config::listen_table()) {
    const auto value = row.get(listen);
    if (value.holds == config::Value::Holds::nothing) continue;
    result += fmt::format("{} = {}\n", row.key, config::to_toml(row.type, value));
  }
  return result;
}

}  // namespace tubed
