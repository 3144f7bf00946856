#include "config/same_settings.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "config/print.h"
#include "config/table.h"

namespace tubed::config {

namespace {

// The first pattern that matches a tube decides, so their order counts.
std::string all_policies(const Settings& settings) {
  std::string text;
  for (const TubePattern& policy : settings.policies) text += print_policy(policy);
  return text;
}

std::string all_roles(const Settings& settings) {
  std::set<std::string> texts;
  for (const RoleSettings& role : settings.roles) texts.insert(print_role(role));
  return fmt::format("{}", fmt::join(texts, ""));
}

// Nodes may have other numbers of listeners, with other addresses.
std::string all_authentication(const Settings& settings) {
  std::set<std::string> texts;
  for (const Listen& listen : settings.listeners)
    texts.insert(fmt::format("{} {}\n", static_cast<int>(listen.auth), listen.role));
  return fmt::format("{}", fmt::join(texts, ""));
}

}  // namespace

std::vector<SameSetting> same_settings(const Settings& settings) {
  std::vector<SameSetting> same;
  for (const Setting& row : settings_table()) {
    if (row.same_on_all_nodes) same.push_back({row.key, to_text(row.type, row.get(settings))});
  }
  same.push_back({"policy", all_policies(settings)});
  same.push_back({"role", all_roles(settings)});
  same.push_back({"listen", all_authentication(settings)});
  return same;
}

}  // namespace tubed::config
