#include "engine/policies.h"

#include <algorithm>

namespace tubed::engine {

void Policies::set(std::string_view tube, PolicyKey key, std::string_view value) {
  auto found = by_tube_.find(tube);
  if (found == by_tube_.end()) {
    if (value.empty()) return;
    found = by_tube_.try_emplace(std::string(tube)).first;
  }
  std::string& text = found->second[static_cast<std::size_t>(key)];
  if (text.empty() && !value.empty()) ++count_;
  if (!text.empty() && value.empty()) --count_;
  text = value;
  if (std::ranges::all_of(found->second, &std::string::empty)) by_tube_.erase(found);
}

bool Policies::is_set(std::string_view tube, PolicyKey key) const {
  const PolicyValues* values = values_of_client(tube);
  return values != nullptr && !(*values)[static_cast<std::size_t>(key)].empty();
}

const PolicyValues* Policies::values_of_client(std::string_view tube) const {
  const auto found = by_tube_.find(tube);
  return found == by_tube_.end() ? nullptr : &found->second;
}

const PolicyValues* Policies::values_of_settings(std::string_view tube) const {
  const auto found = std::ranges::find_if(
      patterns_, [tube](const TubePattern& each) { return matches(each, tube); });
  return found == patterns_.end() ? nullptr : &found->values;
}

PolicyValue Policies::value(std::string_view tube, PolicyKey key) const {
  const auto at = static_cast<std::size_t>(key);
  const PolicyValues* values = values_of_client(tube);
  if (values != nullptr && !(*values)[at].empty()) {
    return {.text = (*values)[at], .source = PolicyValue::Source::client};
  }
  values = values_of_settings(tube);
  if (values != nullptr && !(*values)[at].empty()) {
    return {.text = (*values)[at], .source = PolicyValue::Source::settings};
  }
  return {.text = policy_keys()[at].default_value};
}

std::unique_ptr<Policy> Policies::of(std::string_view tube) const {
  if (!any()) return nullptr;
  const PolicyValues* by_client = values_of_client(tube);
  const PolicyValues* by_settings = values_of_settings(tube);
  if (by_client == nullptr && by_settings == nullptr) return nullptr;
  PolicyValues values;
  for (std::size_t i = 0; i < kPolicyKeys; ++i) {
    if (by_settings != nullptr) values[i] = (*by_settings)[i];
    if (by_client != nullptr && !(*by_client)[i].empty()) values[i] = (*by_client)[i];
  }
  return std::make_unique<Policy>(policy_of(values));
}

}  // namespace tubed::engine
