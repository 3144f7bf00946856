#include "http/settings_json.h"

#include <string_view>
#include <vector>

#include "config/print.h"
#include "config/table.h"
#include "json/json.h"

namespace tubed::http {

namespace {

using json::Json;

Json entry(std::string_view key, std::string_view value, std::string_view default_value,
           bool reloadable) {
  return {{"key", key},
          {"value", value},
          {"default", default_value},
          {"changed", value != default_value},
          {"reloadable", reloadable}};
}

// Without the empty line before a table.
std::string table(const std::string& text) {
  return text.substr(text.find_first_not_of('\n'));
}

}  // namespace

std::string settings_json(const Settings& settings) {
  std::vector<Json> entries;
  for (const auto& row : config::settings_table()) {
    entries.push_back(entry(row.key, config::to_toml(row.type, row.get(settings)),
                            config::to_toml(row.type, row.default_value()), row.reloadable));
  }
  for (const auto& listen : settings.listeners) {
    const std::string text = table(print_listener(listen));
    entries.push_back(entry("listen", text, settings.default_listener ? text : "", true));
  }
  for (const auto& policy : settings.policies)
    entries.push_back(entry("policy", table(print_policy(policy)), "", true));
  for (const auto& role : settings.roles)
    entries.push_back(entry("role", table(print_role(role)), "", true));
  return to_line(Json{{"settings", Json::array(std::move(entries))}}) + '\n';
}

}  // namespace tubed::http
