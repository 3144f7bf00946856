// The [[policy]] tables of the settings file.
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "config/print.h"
#include "config/reload.h"
#include "tests/config/loading.h"

namespace tubed::config_test {
namespace {

// Each key, with values of both kinds.
constexpr std::string_view kAllKeys = R"([[policy]]
tubes = "mail.dead"
keep = 1

[[policy]]
tubes = "mail.*"
max-attempts = 5
max-timeouts = "3"
max-releases = 0
dead = "mail.dead"
backoff = "10:300:3"
ttl = 86400
expired = "bury"
max-jobs = 4294967295
max-reserved = 20
rate = "5/60"
min-ttr = 10
default-ttr = 30
keep = 0

[[policy]]
tubes = "*"
backoff = 5
)";

std::string_view value_of(const TubePattern& policy, std::string_view key) {
  return policy.values[static_cast<std::size_t>(find_policy_key(key).value())];
}

// A table for "t" with this line.
std::string table_with(std::string_view line) {
  return "[[policy]]\ntubes = \"t\"\n" + std::string(line) + "\n";
}

TEST_CASE("a file without policies sets no policy") {
  CHECK(load("").value().policies.empty());
  CHECK(load("policy = []\n").value() == Settings());
}

TEST_CASE("the policies of the file, in its order") {
  const auto policies = load(kAllKeys).value().policies;
  REQUIRE(policies.size() == 3);
  CHECK(policies[0].tubes == "mail.dead");
  CHECK(value_of(policies[0], "keep") == "1");
  CHECK(value_of(policies[0], "ttl").empty());
  CHECK(policies[1].tubes == "mail.*");
  CHECK(value_of(policies[1], "max-attempts") == "5");
  CHECK(value_of(policies[1], "max-timeouts") == "3");
  CHECK(value_of(policies[1], "max-releases") == "0");
  CHECK(value_of(policies[1], "dead") == "mail.dead");
  CHECK(value_of(policies[1], "backoff") == "10:300:3");
  CHECK(value_of(policies[1], "ttl") == "86400");
  CHECK(value_of(policies[1], "expired") == "bury");
  CHECK(value_of(policies[1], "max-jobs") == "4294967295");
  CHECK(value_of(policies[1], "max-reserved") == "20");
  CHECK(value_of(policies[1], "rate") == "5/60");
  CHECK(value_of(policies[1], "min-ttr") == "10");
  CHECK(value_of(policies[1], "default-ttr") == "30");
  CHECK(value_of(policies[1], "keep") == "0");
  CHECK(value_of(policies[2], "backoff") == "5");
  // Inline tables are the same, and a table may have no key but the pattern.
  CHECK(load("policy = [{tubes = \"t\", ttl = 5}]").value().policies ==
        load(table_with("ttl = 5")).value().policies);
  CHECK(load("[[policy]]\ntubes = \"t\"\n").value().policies.size() == 1);
}

TEST_CASE("mistakes in policies are reported with file, line and key") {
  CHECK(load_error("[policy]\ntubes = \"t\"\n") ==
        "tubed.toml:1: policy: expected tables, each opened by [[policy]], not a table");
  CHECK(load_error("policy = \"t\"\n") ==
        "tubed.toml:1: policy: expected tables, each opened by [[policy]], not a string");
  CHECK(load_error("policy = [5]\n").starts_with("tubed.toml:1: policy: expected tables"));
  CHECK(load_error("[[polici]]\ntubes = \"t\"\n") ==
        "tubed.toml:1: polici: unknown key; did you mean policy?");

  CHECK(load_error("\n[[policy]]\nttl = 5\n") == "tubed.toml:2: policy.tubes: missing");
  CHECK(load_error("[[policy]]\ntubes = \"\"\n") ==
        "tubed.toml:2: policy.tubes: expected a pattern of names, like \"mail.*\"");
  CHECK(load_error("[[policy]]\ntubes = \"a\\nb\"\n") ==
        "tubed.toml:2: policy.tubes: expected a pattern of names, like \"mail.*\"");
  CHECK(load_error("[[policy]]\ntubes = [\"t\"]\n") ==
        "tubed.toml:2: policy.tubes: expected a string or an integer, not an array");
  CHECK(load_error("[[policy]]\ntubes = \"t\"\n\n[[policy]]\nttl = 5\ntubes = \"t\"\n") ==
        "tubed.toml:4: policy.tubes: \"t\" has a policy already (line 1)");

  CHECK(load_error(table_with("max-attempt = 5")) ==
        "tubed.toml:3: policy.max-attempt: unknown key; did you mean policy.max-attempts?");
  CHECK(load_error(table_with("tube = \"u\"")) ==
        "tubed.toml:3: policy.tube: unknown key; did you mean policy.tubes?");
  CHECK(load_error(table_with("entirely_different = 5")) ==
        "tubed.toml:3: policy.entirely_different: unknown key");
  CHECK(load_error(table_with("max.attempts = 5")).starts_with("tubed.toml:3: policy.max: "));

  CHECK(load_error(table_with("ttl = true")) ==
        "tubed.toml:3: policy.ttl: expected a string or an integer, not a boolean");
  CHECK(load_error(table_with("ttl = 1.5")) ==
        "tubed.toml:3: policy.ttl: expected a string or an integer, not a floating point number");
  CHECK(load_error(table_with("ttl = \"-\"")) ==
        "tubed.toml:3: policy.ttl: \"-\" is not: seconds, integer < 2^32");
  // The first mistake of the file.
  CHECK(load_error(table_with("ttl = -1") + "[limits]\ntubes = 0\n")
            .starts_with("tubed.toml:3: policy.ttl: "));
  CHECK(load_error("[limits]\ntubes = 0\n" + table_with("ttl = -1"))
            .starts_with("tubed.toml:2: limits.tubes: "));
}

TEST_CASE("a bad value of each key is reported with the values that it may have") {
  const std::vector<std::vector<std::string>> kBad = {
      {"max-attempts", "-1", "integer < 2^32"},
      {"max-timeouts", "4294967296", "integer < 2^32"},
      {"max-releases", "\"x\"", "integer < 2^32"},
      {"dead", "\"-t\"", "bury, delete or a tube"},
      {"backoff", "\"10:5\"", "seconds[:most seconds[:factor]]"},
      {"ttl", "\"5s\"", "seconds, integer < 2^32"},
      {"expired", "\"a b\"", "bury, delete or a tube"},
      {"max-jobs", "\"\"", "integer < 2^32"},
      {"max-reserved", "-5", "integer < 2^32"},
      {"rate", "5", "count/seconds"},
      {"min-ttr", "\"1.5\"", "seconds, integer < 2^32"},
      {"default-ttr", "4294967296", "seconds, integer < 2^32"},
      {"keep", "2", "0 or 1"},
  };
  CHECK(kBad.size() == kPolicyKeys);
  for (const auto& row : kBad) {
    const std::string& value = row[1];
    const std::string quoted = value.starts_with('"') ? value : '"' + value + '"';
    CHECK(load_error(table_with(row[0] + " = " + value)) ==
          "tubed.toml:3: policy." + row[0] + ": " + quoted + " is not: " + row[2]);
  }
}

TEST_CASE("printed policies load back to the same") {
  const auto settings = load(kAllKeys).value();
  const auto printed = print_settings(settings);
  CAPTURE(printed);
  CHECK(load(printed).value() == settings);
  CHECK(print_settings(load(printed).value()) == printed);
  CHECK(printed.find("\n[[policy]]\ntubes = \"mail.*\"\nmax-attempts = 5\n") != std::string::npos);
  CHECK(printed.find("\nrate = \"5/60\"\n") != std::string::npos);

  auto odd = settings;
  odd.policies[0].tubes = "a[\"b ]\\.[c]";
  CHECK(load(print_settings(odd)).value() == odd);
  // After a listener, too.
  const auto with_listener =
      load("[[listen]]\naddress = \"::1\"\n" + std::string(kAllKeys)).value();
  CHECK(load(print_settings(with_listener)).value() == with_listener);
}

TEST_CASE("a reload changes the policies") {
  const auto current = load(kAllKeys).value();
  CHECK(plan_reload(current, current).changed.empty());
  for (const auto& fresh : {load("").value(), load(table_with("ttl = 5")).value(),
                            load(std::string(kAllKeys) + table_with("ttl = 5")).value()}) {
    const auto plan = plan_reload(current, fresh);
    CHECK(plan.changed == std::vector<std::string>{"policy"});
    CHECK(plan.needs_restart.empty());
    CHECK(plan.next.policies == fresh.policies);
  }
  // Another order is another policy.
  auto swapped = current;
  std::swap(swapped.policies[0], swapped.policies[1]);
  CHECK(plan_reload(current, swapped).changed == std::vector<std::string>{"policy"});
}

}  // namespace
}  // namespace tubed::config_test
