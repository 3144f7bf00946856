#include "config/print.h"

#include <cstddef>

#include <fmt/format.h>

#include "config/table.h"
#include "config/value.h"

namespace tubed {

namespace {

// At the end of a line: "  # ORIGIN", or nothing.
std::string comment(std::string_view origin) {
  return origin.empty() ? "" : fmt::format("  # {}", origin);
}

std::string print(const Settings& settings, const config::Places* places) {
  std::string result;
  if (places != nullptr) {
    for (const auto& file : places->files())
      result += fmt::format("# Read: {}\n", config::printable(file));
  }
  std::string_view section;
  for (const auto& row : config::settings_table()) {
    if (row.section() != section) {
      section = row.section();
      result += fmt::format("\n[{}]\n", section);
    }
    const auto value = row.get(settings);
    result += fmt::format("{}{} = {}{}\n", row.can_be_written(value) ? "" : "#", row.name(),
                          config::to_toml(row.type, value),
                          comment(places != nullptr ? places->origin(row.key) : ""));
  }
  const auto origin = [&](auto member, std::size_t i) {
    return places != nullptr ? (places->*member)(i) : "";
  };
  using config::Places;
  for (std::size_t i = 0; i < settings.listeners.size(); ++i)
    result += print_listener(settings.listeners[i], origin(&Places::listener, i));
  for (std::size_t i = 0; i < settings.policies.size(); ++i)
    result += print_policy(settings.policies[i], origin(&Places::policy, i));
  for (std::size_t i = 0; i < settings.roles.size(); ++i)
    result += print_role(settings.roles[i], origin(&Places::role, i));
  return result;
}

}  // namespace

std::string print_settings(const Settings& settings) {
  return print(settings, nullptr);
}

std::string print_settings(const Settings& settings, const config::Places& places) {
  return print(settings, &places);
}

// A number is an integer of TOML; every other value is a string.
std::string print_policy(const TubePattern& policy, std::string_view origin) {
  const auto quoted = [](const std::string& text) {
    return config::to_toml({.kind = config::Kind::text}, config::Value(text));
  };
  std::string result =
      fmt::format("\n[[policy]]{}\ntubes = {}\n", comment(origin), quoted(policy.tubes));
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
std::string print_element(std::string_view table, const Rows& rows, const Element& element,
                          std::string_view origin) {
  std::string result = fmt::format("\n[[{}]]{}\n", table, comment(origin));
  for (const auto& row : rows) {
    const auto value = row.get(element);
    if (value.holds == config::Value::Holds::nothing) continue;
    result += fmt::format("{} = {}\n", row.key, config::to_toml(row.type, value));
  }
  return result;
}

}  // namespace

std::string print_listener(const Listen& listen, std::string_view origin) {
  return print_element("listen", config::listen_table(), listen, origin);
}

std::string print_role(const RoleSettings& role, std::string_view origin) {
  return print_element("role", config::role_table(), role, origin);
}

}  // namespace tubed
