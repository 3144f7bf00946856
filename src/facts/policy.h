// Policy: what the queue does with the jobs of a tube beyond the protocol of beanstalkd: how often
// a job may be tried, how long it may wait, how many the tube takes and gives. [extension: tube
// policies]
//
// A value of a policy is text, as an operator or a client writes it: a PolicyKey and a word. A
// Policy is the same as numbers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "facts/types.h"

namespace tubed {

enum class PolicyKey : std::uint8_t {
  max_attempts,
  max_timeouts,
  max_releases,
  dead,
  backoff,
  ttl,
  expired,
  max_jobs,
  max_reserved,
  rate,
  min_ttr,
  default_ttr,
  keep,
};
inline constexpr std::size_t kPolicyKeys = 13;

// The name of a key, and its meaning without a value.
struct PolicyKeyRow {
  std::string_view name;
  std::string_view default_value;  // the policy does nothing
  std::string_view form;           // of a value
  std::string_view meaning;
  bool is_place = false;  // a value is bury, delete or the name of a tube
};
std::span<const PolicyKeyRow, kPolicyKeys> policy_keys();
// No value: no key has this name. O(keys).
std::optional<PolicyKey> find_policy_key(std::string_view name);

// The values that are set, by PolicyKey; empty: the default.
using PolicyValues = std::array<std::string, kPolicyKeys>;

// The values of the settings for the tubes whose names match a pattern.
struct TubePattern {
  std::string tubes;
  PolicyValues values;
  friend bool operator==(const TubePattern&, const TubePattern&) = default;
};
// Matches the name against a pattern of the shell: `mail.*`. [fnmatch(3)]
bool matches(const TubePattern& pattern, std::string_view name);

struct Policy {
  // With each new reservation, a job may delay `base` times `factor` longer than before, up to
  // `most`. A base of 0: not at all.
  struct Backoff {
    Seconds base;
    Seconds most{3600};
    std::uint32_t factor = 2;
  };
  // `count` reservations in each `seconds`; 0: any number.
  struct Rate {
    std::uint32_t count = 0;
    Seconds seconds;
    friend bool operator==(const Rate&, const Rate&) = default;
  };

  std::uint32_t max_attempts = 0;  // zero: any number, as in the next two
  std::uint32_t max_timeouts = 0;
  std::uint32_t max_releases = 0;
  std::string dead;  // `bury`, `delete` or a tube
  Backoff backoff;
  Seconds ttl;          // zero: without end
  std::string expired;  // as `dead`
  std::uint32_t max_jobs = 0;
  std::uint32_t max_reserved = 0;
  Rate rate;
  Seconds min_ttr;
  Seconds default_ttr;
  bool keep = false;

  bool limits_attempts() const { return max_attempts > 0 || max_timeouts > 0 || max_releases > 0; }
};

// The delay of a job that comes back after that many attempts, 1 at least. The same job and attempt
// have the same delay. Precondition: the base is not 0. O(1).
Duration backoff_delay(const Policy::Backoff& backoff, JobId id, std::uint32_t attempts);

// Where a dead or expired job goes if not to a tube of that name.
inline constexpr std::string_view kToBuried = "bury";
inline constexpr std::string_view kToNowhere = "delete";

// True: a policy can have the text as the value of the key.
bool is_policy_value(PolicyKey key, std::string_view text);
// Precondition: each value that is set is one that a policy can have.
Policy policy_of(const PolicyValues& values);

}  // namespace tubed
