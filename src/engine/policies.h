// Policies: the policies of all tubes, whether the tubes exist or not.
//
// A value comes from a client (tube-policy), which is durable, or else from the settings, where a
// pattern names the tubes: the first pattern that matches a name gives all its values. A key
// without a value has its default.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "facts/policy.h"

namespace tubed::engine {

// The value of a key in force, and where it comes from.
struct PolicyValue {
  enum class Source : std::uint8_t { none, settings, client };

  std::string_view text;  // valid until the next change of a policy
  Source source = Source::none;
};

class Policies {
 public:
  // Replaces the policies of the settings. O(patterns).
  void set_patterns(std::vector<TubePattern> patterns) { patterns_ = std::move(patterns); }
  const std::vector<TubePattern>& patterns() const { return patterns_; }
  // Sets the value of a client; empty: takes it away. O(log tubes).
  void set(std::string_view tube, PolicyKey key, std::string_view value);
  // True: a client has set that value. O(log tubes).
  bool is_set(std::string_view tube, PolicyKey key) const;
  // How many values clients have set.
  std::size_t count() const { return count_; }
  // True: a tube may have a policy.
  bool any() const { return count_ > 0 || !patterns_.empty(); }
  // The value in force. O(log tubes + patterns).
  PolicyValue value(std::string_view tube, PolicyKey key) const;
  // Returns the policy in force, or null. O(log tubes + patterns).
  std::unique_ptr<Policy> of(std::string_view tube) const;

  // Calls visit(tube, key, value) for each value of a client, by tube and key. O(values).
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [tube, values] : by_tube_) {
      for (std::size_t i = 0; i < kPolicyKeys; ++i) {
        if (!values[i].empty()) visit(tube, policy_keys()[i].name, values[i]);
      }
    }
  }

 private:
  const PolicyValues* values_of_client(std::string_view tube) const;
  const PolicyValues* values_of_settings(std::string_view tube) const;

  std::vector<TubePattern> patterns_;
  std::map<std::string, PolicyValues, std::less<>> by_tube_;  // no entry is empty
  std::size_t count_ = 0;
};

}  // namespace tubed::engine
