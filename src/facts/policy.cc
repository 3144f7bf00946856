#include "facts/policy.h"

#include <algorithm>

#include "facts/role.h"
#include "text/numbers.h"

namespace tubed {

namespace {

constexpr std::array<PolicyKeyRow, kPolicyKeys> kKeys = {{
    {"max-attempts", "0", "integer < 2^32",
     "After this number of reservations, a job that comes back is dead; 0: never."},
    {"max-timeouts", "0", "integer < 2^32", "The same after this number of timeouts."},
    {"max-releases", "0", "integer < 2^32", "The same after this number of releases."},
    {"dead", "bury", "bury, delete or a tube", "Where a dead job goes.", true},
    {"backoff", "0", "seconds[:most seconds[:factor]]",
     "The delay of a job that comes back without a delay: this long after the first reservation, "
     "factor times (2) as long after each further reservation, and at most that long (3600). Up to "
     "12 % are added or taken off, so that jobs do not come back together."},
    {"ttl", "0", "seconds, integer < 2^32",
     "A job that is not reserved or buried this long after its put has expired; 0: never."},
    {"expired", "delete", "bury, delete or a tube", "Where an expired job goes.", true},
    {"max-jobs", "0", "integer < 2^32",
     "The tube takes no job while it has this many; 0: any number."},
    {"max-reserved", "0", "integer < 2^32",
     "The tube gives no job while clients hold this many; 0: any number."},
    {"rate", "0", "count/seconds",
     "The tube gives at most this many jobs in this time; 0: any number."},
    {"min-ttr", "0", "seconds, integer < 2^32", "A shorter TTR of a put is raised to this."},
    {"default-ttr", "0", "seconds, integer < 2^32",
     "The TTR of a put that has 0; 0: 1 second, as in beanstalkd."},
    {"keep", "0", "0 or 1", "1: the tube stays when it is empty, with its statistics."},
}};

constexpr std::uint32_t kMaxFactor = 10;

// Takes a number up to the next `end`, which is taken as well, or the end of the text.
bool take(std::string_view& text, char end, std::uint32_t& number) {
  const std::size_t length = std::min(text.find(end), text.size());
  const auto read = parse_number<std::uint32_t>(text.substr(0, length));
  // Nothing may end with the separator.
  if (!read || length + 1 == text.size()) return false;
  number = *read;
  text.remove_prefix(std::min(length + 1, text.size()));
  return true;
}

bool read(std::string_view text, std::uint32_t& number) {
  return take(text, '\0', number) && text.empty();
}

bool read(std::string_view text, Seconds& seconds) {
  return read(text, seconds.count);
}

bool read(std::string_view text, std::string& place) {
  place = text;
  return is_tube_name(text);
}

bool read(std::string_view text, bool& flag) {
  flag = text == "1";
  return flag || text == "0";
}

bool read(std::string_view text, Policy::Backoff& backoff) {
  if (!take(text, ':', backoff.base.count)) return false;
  backoff.most.count = std::max(backoff.most.count, backoff.base.count);
  if (text.empty()) return true;
  if (!take(text, ':', backoff.most.count) || backoff.most.count < backoff.base.count) return false;
  if (text.empty()) return true;
  return read(text, backoff.factor) && backoff.factor >= 1 && backoff.factor <= kMaxFactor;
}

bool read(std::string_view text, Policy::Rate& rate) {
  if (text == "0") return true;
  return take(text, '/', rate.count) && rate.count > 0 && read(text, rate.seconds) &&
         rate.seconds.count > 0;
}

bool read_value(PolicyKey key, std::string_view text, Policy& policy) {
  switch (key) {
    case PolicyKey::max_attempts:
      return read(text, policy.max_attempts);
    case PolicyKey::max_timeouts:
      return read(text, policy.max_timeouts);
    case PolicyKey::max_releases:
      return read(text, policy.max_releases);
    case PolicyKey::dead:
      return read(text, policy.dead);
    case PolicyKey::backoff:
      return read(text, policy.backoff);
    case PolicyKey::ttl:
      return read(text, policy.ttl);
    case PolicyKey::expired:
      return read(text, policy.expired);
    case PolicyKey::max_jobs:
      return read(text, policy.max_jobs);
    case PolicyKey::max_reserved:
      return read(text, policy.max_reserved);
    case PolicyKey::rate:
      return read(text, policy.rate);
    case PolicyKey::min_ttr:
      return read(text, policy.min_ttr);
    case PolicyKey::default_ttr:
      return read(text, policy.default_ttr);
    case PolicyKey::keep:
      return read(text, policy.keep);
  }
  return false;
}

}  // namespace

std::span<const PolicyKeyRow, kPolicyKeys> policy_keys() {
  return kKeys;
}

std::optional<PolicyKey> find_policy_key(std::string_view name) {
  const auto found = std::ranges::find(kKeys, name, &PolicyKeyRow::name);
  if (found == kKeys.end()) return std::nullopt;
  return static_cast<PolicyKey>(found - kKeys.begin());
}

bool matches(const TubePattern& pattern, std::string_view name) {
  return matches_name(pattern.tubes, name);
}

// Spread by the finalizer of MurmurHash3.
Duration backoff_delay(const Policy::Backoff& backoff, JobId id, std::uint32_t attempts) {
  constexpr std::int64_t kSpread = 1'200;  // ten-thousandths
  std::uint64_t seconds = backoff.base.count;
  for (std::uint32_t i = 1; i < attempts && seconds < backoff.most.count && backoff.factor > 1; ++i)
    seconds *= backoff.factor;
  seconds = std::min<std::uint64_t>(seconds, backoff.most.count);
  std::uint64_t hash = id + (std::uint64_t{attempts} << 32);
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdULL;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  hash ^= hash >> 33;
  const auto spread = static_cast<std::int64_t>(hash % (2 * kSpread + 1)) - kSpread;
  const Duration delay = std::chrono::seconds(seconds);
  return delay + delay / 10'000 * spread;
}

bool is_policy_value(PolicyKey key, std::string_view text) {
  Policy policy;
  return text.size() <= kMaxTubeNameBytes && read_value(key, text, policy);
}

Policy policy_of(const PolicyValues& values) {
  Policy policy;
  for (std::size_t i = 0; i < kPolicyKeys; ++i) {
    const std::string_view value = values[i].empty() ? kKeys[i].default_value : values[i];
    read_value(static_cast<PolicyKey>(i), value, policy);
  }
  return policy;
}

}  // namespace tubed
