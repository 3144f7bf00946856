// The values of policies, and which of them is in force.
#include "facts/policy.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "engine/policies.h"

namespace tubed {

namespace {

using namespace std::chrono_literals;
using engine::Policies;
using engine::PolicyValue;

constexpr std::string_view kMost = "4294967295";

PolicyKey key_of(std::string_view name) {
  return find_policy_key(name).value();
}

// The policy with this value alone.
Policy with(PolicyKey key, std::string_view value) {
  PolicyValues values;
  values[static_cast<std::size_t>(key)] = value;
  return policy_of(values);
}

void check_values(std::string_view name, const std::vector<std::string>& good,
                  const std::vector<std::string>& bad) {
  const PolicyKey key = key_of(name);
  for (const std::string& value : good)
    CHECK_MESSAGE(is_policy_value(key, value), name, ' ', value);
  for (const std::string& value : bad) {
    CHECK_MESSAGE(!is_policy_value(key, value), name, ' ', value);
  }
}

TubePattern pattern(std::string tubes, PolicyKey key, std::string value) {
  TubePattern made{.tubes = std::move(tubes), .values = {}};
  made.values[static_cast<std::size_t>(key)] = std::move(value);
  return made;
}

}  // namespace

TEST_CASE("each key of a policy is found by its name, and its default is one of its values") {
  CHECK(policy_keys().size() == kPolicyKeys);
  for (std::size_t i = 0; i < kPolicyKeys; ++i) {
    const PolicyKeyRow& row = policy_keys()[i];
    CHECK(find_policy_key(row.name) == static_cast<PolicyKey>(i));
    CHECK(is_policy_value(static_cast<PolicyKey>(i), row.default_value));
    CHECK_FALSE(is_policy_value(static_cast<PolicyKey>(i), ""));
    CHECK_FALSE(is_policy_value(static_cast<PolicyKey>(i), kNoPolicyValue));
  }
  CHECK_FALSE(find_policy_key(""));
  CHECK_FALSE(find_policy_key("max"));
  CHECK_FALSE(find_policy_key("ttl "));
}

TEST_CASE("the values of each key") {
  const std::string most(kMost);
  const std::vector<std::string> numbers{"0", "1", "007", most};
  const std::vector<std::string> no_numbers{"-1",
                                            "+1",
                                            " 1",
                                            "1 ",
                                            "1s",
                                            "1.5",
                                            "x",
                                            "4294967296",
                                            std::string(200, '0') + "1",
                                            std::string("1\0", 2),
                                            std::string("1\0002", 3)};
  for (const char* name : {"max-attempts", "max-timeouts", "max-releases", "ttl", "max-jobs",
                           "max-reserved", "min-ttr", "default-ttr"}) {
    check_values(name, numbers, no_numbers);
  }
  for (const char* name : {"dead", "expired"}) {
    check_values(name, {"bury", "delete", "t", "a.b/c;d+e-$_()", std::string(200, 't')},
                 {"-t", "a b", "a:b", std::string(201, 't'), "\xc3\xa4"});
  }
  check_values("backoff",
               {"0", "1", "7200", "10:10", "10:20", "10:20:1", "10:20:10", "0:0", "0:5:2",
                most + ":" + most + ":10"},
               {"10:", ":10", "10:9", "10:20:", "10:20:0", "10:20:11", "10:20:2:", "10:20:2:2",
                "10/20", "x", "10:x", "10:20:x", "4294967296"});
  check_values("rate", {"0", "1/1", "5/60", most + "/" + most},
               {"5", "0/1", "1/0", "0/0", "/5", "5/", "5/5/5", "5:5", "00", "4294967296/1"});
  check_values("keep", {"0", "1"}, {"2", "01", "yes", "true"});
}

TEST_CASE("a policy without values does nothing") {
  const Policy policy = policy_of({});
  CHECK(policy.max_attempts == 0);
  CHECK(policy.max_timeouts == 0);
  CHECK(policy.max_releases == 0);
  CHECK_FALSE(policy.limits_attempts());
  CHECK(policy.dead == kToBuried);
  CHECK(policy.backoff.base.count == 0);
  CHECK(policy.ttl.count == 0);
  CHECK(policy.expired == kToNowhere);
  CHECK(policy.max_jobs == 0);
  CHECK(policy.max_reserved == 0);
  CHECK(policy.rate.count == 0);
  CHECK(policy.min_ttr.count == 0);
  CHECK(policy.default_ttr.count == 0);
  CHECK_FALSE(policy.keep);
}

TEST_CASE("the values of a policy as numbers") {
  CHECK(with(PolicyKey::max_attempts, "5").max_attempts == 5);
  CHECK(with(PolicyKey::max_attempts, "5").limits_attempts());
  CHECK(with(PolicyKey::max_timeouts, "6").max_timeouts == 6);
  CHECK(with(PolicyKey::max_timeouts, "6").limits_attempts());
  CHECK(with(PolicyKey::max_releases, "7").max_releases == 7);
  CHECK(with(PolicyKey::max_releases, "7").limits_attempts());
  CHECK(with(PolicyKey::dead, "mail.dead").dead == "mail.dead");
  CHECK(with(PolicyKey::ttl, "8").ttl.count == 8);
  CHECK(with(PolicyKey::expired, "bury").expired == kToBuried);
  CHECK(with(PolicyKey::max_jobs, "9").max_jobs == 9);
  CHECK(with(PolicyKey::max_reserved, "10").max_reserved == 10);
  CHECK(with(PolicyKey::rate, "5/60").rate.count == 5);
  CHECK(with(PolicyKey::rate, "5/60").rate.seconds.count == 60);
  CHECK(with(PolicyKey::min_ttr, "11").min_ttr.count == 11);
  CHECK(with(PolicyKey::default_ttr, "12").default_ttr.count == 12);
  CHECK(with(PolicyKey::keep, "1").keep);

  const Policy::Backoff full = with(PolicyKey::backoff, "10:300:3").backoff;
  CHECK(full.base.count == 10);
  CHECK(full.most.count == 300);
  CHECK(full.factor == 3);
  const Policy::Backoff base = with(PolicyKey::backoff, "10").backoff;
  CHECK(base.most.count == 3600);
  CHECK(base.factor == 2);
  CHECK(with(PolicyKey::backoff, "7200").backoff.most.count == 7200);
}

TEST_CASE("a pattern is one of the shell") {
  const auto match = [](const char* tubes, const char* name) {
    return matches({.tubes = tubes, .values = {}}, name);
  };
  CHECK(match("mail", "mail"));
  CHECK_FALSE(match("mail", "mail.dead"));
  CHECK_FALSE(match("mail", "a.mail"));
  CHECK(match("mail*", "mail"));
  CHECK(match("mail.*", "mail.dead"));
  CHECK(match("mail.*", "mail.dead.a/b"));
  CHECK_FALSE(match("mail.*", "mail"));
  CHECK(match("*", "default"));
  CHECK(match("*", ".hidden"));
  CHECK(match("*.dead", "mail.dead"));
  CHECK(match("mail.?", "mail.1"));
  CHECK_FALSE(match("mail.?", "mail.12"));
  CHECK(match("mail.[0-4]", "mail.4"));
  CHECK_FALSE(match("mail.[0-4]", "mail.5"));
  CHECK(match("mail.[!0-4]", "mail.5"));
  CHECK_FALSE(match("Mail", "mail"));
}

TEST_CASE("a backoff grows by the factor up to the most, with up to 12 percent more or less") {
  const Policy::Backoff backoff{.base = {100}, .most = {5'000}, .factor = 3};
  const std::vector<std::int64_t> expected{100, 300, 900, 2'700, 5'000, 5'000};
  for (std::uint32_t attempts = 1; attempts <= expected.size(); ++attempts) {
    const Duration middle = std::chrono::seconds(expected[attempts - 1]);
    Duration least = Duration::max();
    Duration most = Duration::zero();
    for (JobId id = 1; id <= 2'000; ++id) {
      const Duration delay = backoff_delay(backoff, id, attempts);
      least = std::min(least, delay);
      most = std::max(most, delay);
    }
    CHECK(least >= middle * 88 / 100);
    CHECK(most <= middle * 112 / 100);
    // They are spread over the whole.
    CHECK(least < middle * 89 / 100);
    CHECK(most > middle * 111 / 100);
  }
}

TEST_CASE("a backoff after 0 attempts is as long as after the first") {
  const Policy::Backoff backoff{.base = {100}, .most = {5'000}, .factor = 2};
  CHECK(backoff_delay(backoff, 1, 0) >= 88s);
  CHECK(backoff_delay(backoff, 1, 0) <= 112s);
}

TEST_CASE("a backoff with a factor of 1 does not grow") {
  const Policy::Backoff backoff{.base = {100}, .most = {5'000}, .factor = 1};
  for (const std::uint32_t attempts : {1U, 2U, 1'000U, UINT32_MAX}) {
    CHECK(backoff_delay(backoff, 1, attempts) >= 88s);
    CHECK(backoff_delay(backoff, 1, attempts) <= 112s);
  }
}

TEST_CASE("the largest backoff is a time in the future") {
  const Policy::Backoff backoff = with(PolicyKey::backoff, "4294967295:4294967295:10").backoff;
  for (JobId id = 1; id < 100; ++id) {
    const Duration delay = backoff_delay(backoff, id, UINT32_MAX);
    CHECK(delay >= std::chrono::seconds(UINT32_MAX) * 88 / 100);
    CHECK(delay <= std::chrono::seconds(UINT32_MAX) / 100 * 113);
  }
}

TEST_CASE("the same job and attempt have the same backoff, others have another") {
  const Policy::Backoff backoff{.base = {1'000}, .most = {1'000}, .factor = 2};
  std::set<Duration> delays;
  for (JobId id = 1; id <= 100; ++id) {
    for (std::uint32_t attempts = 1; attempts <= 5; ++attempts) {
      const Duration delay = backoff_delay(backoff, id, attempts);
      CHECK(delay == backoff_delay(backoff, id, attempts));
      delays.insert(delay);
    }
  }
  CHECK(delays.size() > 400);
}

TEST_CASE("a value of a client overrides the settings, and they override the default") {
  Policies policies;
  const auto value = [&](std::string_view tube) { return policies.value(tube, PolicyKey::ttl); };
  CHECK_FALSE(policies.any());
  CHECK(value("mail.a").text == "0");
  CHECK(value("mail.a").source == PolicyValue::Source::none);
  CHECK(policies.of("mail.a") == nullptr);

  policies.set_patterns({pattern("mail.*", PolicyKey::ttl, "5")});
  CHECK(policies.any());
  CHECK(value("mail.a").text == "5");
  CHECK(value("mail.a").source == PolicyValue::Source::settings);
  CHECK(policies.of("mail.a")->ttl.count == 5);
  CHECK(policies.of("mail") == nullptr);

  policies.set("mail.a", PolicyKey::ttl, "6");
  CHECK(value("mail.a").text == "6");
  CHECK(value("mail.a").source == PolicyValue::Source::client);
  CHECK(policies.of("mail.a")->ttl.count == 6);
  CHECK(value("mail.b").text == "5");

  // Also a value that is the default.
  policies.set("mail.a", PolicyKey::ttl, "0");
  CHECK(value("mail.a").text == "0");
  CHECK(value("mail.a").source == PolicyValue::Source::client);
  CHECK(policies.of("mail.a")->ttl.count == 0);

  policies.set("mail.a", PolicyKey::ttl, "");
  CHECK(value("mail.a").text == "5");
  policies.set_patterns({});
  CHECK(value("mail.a").source == PolicyValue::Source::none);
  CHECK_FALSE(policies.any());
}

TEST_CASE("the keys of a tube come from both the client and the settings") {
  Policies policies;
  policies.set_patterns({pattern("t", PolicyKey::ttl, "5")});
  policies.set("t", PolicyKey::max_attempts, "3");
  const auto policy = policies.of("t");
  CHECK(policy->ttl.count == 5);
  CHECK(policy->max_attempts == 3);
  CHECK(policies.value("t", PolicyKey::ttl).source == PolicyValue::Source::settings);
  CHECK(policies.value("t", PolicyKey::max_attempts).source == PolicyValue::Source::client);
  CHECK(policies.value("t", PolicyKey::keep).source == PolicyValue::Source::none);
}

TEST_CASE("the first pattern that matches gives all values of the settings") {
  Policies policies;
  policies.set_patterns({pattern("mail.dead", PolicyKey::keep, "1"),
                         pattern("mail.*", PolicyKey::ttl, "5"),
                         pattern("*", PolicyKey::ttl, "9")});
  CHECK(policies.of("mail.dead")->keep);
  CHECK(policies.of("mail.dead")->ttl.count == 0);
  CHECK(policies.value("mail.dead", PolicyKey::ttl).source == PolicyValue::Source::none);
  CHECK(policies.of("mail.a")->ttl.count == 5);
  CHECK(policies.of("default")->ttl.count == 9);
}

TEST_CASE("the values of clients are counted") {
  Policies policies;
  CHECK(policies.count() == 0);
  CHECK_FALSE(policies.is_set("t", PolicyKey::ttl));
  policies.set("t", PolicyKey::ttl, "5");
  policies.set("t", PolicyKey::ttl, "6");
  CHECK(policies.count() == 1);
  CHECK(policies.is_set("t", PolicyKey::ttl));
  CHECK_FALSE(policies.is_set("t", PolicyKey::keep));
  CHECK_FALSE(policies.is_set("u", PolicyKey::ttl));
  policies.set("t", PolicyKey::keep, "1");
  policies.set("a", PolicyKey::keep, "1");
  CHECK(policies.count() == 3);
  // The values of the settings are not.
  policies.set_patterns({pattern("*", PolicyKey::ttl, "9")});
  CHECK(policies.count() == 3);

  std::vector<std::string> visited;
  policies.for_each([&](std::string_view tube, std::string_view key, std::string_view value) {
    visited.push_back(std::string(tube) + " " + std::string(key) + " " + std::string(value));
  });
  CHECK(visited == std::vector<std::string>{"a keep 1", "t ttl 6", "t keep 1"});

  policies.set("u", PolicyKey::ttl, "");
  policies.set("t", PolicyKey::dead, "");
  CHECK(policies.count() == 3);
  policies.set("t", PolicyKey::ttl, "");
  policies.set("t", PolicyKey::ttl, "");
  policies.set("t", PolicyKey::keep, "");
  policies.set("a", PolicyKey::keep, "");
  CHECK(policies.count() == 0);
  policies.set_patterns({});
  CHECK_FALSE(policies.any());
}

}  // namespace tubed
