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
    const auto value = row.get(settings);
    result += fmt::format("{}{} = {}\n", row.can_be_written(value) ? "" : "#", row.name(),
                          config::to_toml(row.type, value));
  }
  for (const auto& listen : settings.listeners) result += print_listener(listen);
  for (const auto& policy : settings.policies) result += print_policy(policy);
  for (const auto& role : settings.roles) result += print_role(role);
  return result;
}

// A number is an integer of TOML; every other value is a string.
std::string print_policy(const TubePattern& policy) {
  const auto quoted = [](const std::string& text) {
    return config::to_toml({.kind = config::Kind::text}, config::Value(text));
  };
  std::string result = fmt::format("\n[[policy]]\ntubes = {}\n", quoted(policy.tubes));
  for (std::size_t i = 0; i < kPolicyKeys; ++i) {
    const std::string& value = policy.values[i];
    if (value.empty()) continue;
    const bool is_number = value.find_first_not_of("0123456789") == std::string::npos;
    result += fmt::format("{} = {}\n", policy_keys()[i].name, is_number ? value : quoted(value));
  }
  return result;
}

namespace {

// Keys without a value are left out: they have no spelling for "not given".
template <class Element, class Rows>
std::string print_element(std::string_view table, const Rows& rows, const Element& element) {
  std::string result = fmt::format("\n[[{}]]\n", table);
  for (const auto& row : rows) {
    const auto value = row.get(element);
    if (value.holds == config::Value::Holds::nothing) continue;
    result += fmt::format("{} = {}\n", row.key, config::to_toml(row.type, value));
  }
  return result;
}

}  // namespace

std::string print_listener(const Listen& listen) {
  return print_element("listen", config::listen_table(), listen);
}

std::string print_role(const RoleSettings& role) {
  return print_element("role", config::role_table(), role);
}

}  // namespace tubed
