#include "config/same_settings.h"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "config/table.h"

namespace tubed::config {
namespace {

// Returns the names of the settings that differ.
std::set<std::string_view> differing(const Settings& one, const Settings& other) {
  const auto left = same_settings(one);
  const auto right = same_settings(other);
  REQUIRE(left.size() == right.size());
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < left.size(); ++i) {
    CHECK(left[i].name == right[i].name);
    if (left[i] != right[i]) names.insert(left[i].name);
  }
  return names;
}

// Returns another value of the row that its type allows.
Value changed(const Setting& row, const Value& value) {
  if (row.type.kind == Kind::address) return std::string("127.0.0.1:9");
  if (value.holds == Value::Holds::text) return value.text + "x";
  if (value.holds == Value::Holds::list) return std::vector<std::string>{"x"};
  return value.number == 0 ? std::int64_t{1'000'000'000} : std::int64_t{0};
}

Listen listener(std::uint16_t port, AuthMode auth, std::string role) {
  Listen listen;
  listen.port = port;
  listen.auth = auth;
  listen.role = std::move(role);
  return listen;
}

RoleSettings role(std::string name, std::string token) {
  RoleSettings settings;
  settings.role.name = std::move(name);
  settings.tokens.push_back(std::move(token));
  return settings;
}

TubePattern policy(std::string tubes, std::string max_attempts) {
  TubePattern pattern;
  pattern.tubes = std::move(tubes);
  pattern.values[0] = std::move(max_attempts);
  return pattern;
}

}  // namespace

TEST_CASE("exactly the rows that should be the same on all nodes are compared") {
  const Settings defaults;
  CHECK(differing(defaults, defaults).empty());
  std::size_t compared = 0;
  for (const Setting& row : settings_table()) {
    CAPTURE(row.key);
    Settings other;
    // Other numbers than 0 and 1 would be no word of a choice.
    const bool is_choice = row.type.kind == Kind::choice || row.type.kind == Kind::truth;
    const Value value = row.get(defaults);
    row.set(other, is_choice ? Value(std::int64_t{1} - value.number) : changed(row, value));
    const std::set<std::string_view> expected =
        row.same_on_all_nodes ? std::set{row.key} : std::set<std::string_view>{};
    CHECK(differing(defaults, other) == expected);
    compared += row.same_on_all_nodes ? 1 : 0;
  }
  CHECK(compared + 3 == same_settings(defaults).size());
}

TEST_CASE("no path, address or other name is compared, except that of a role") {
  for (const Setting& row : settings_table()) {
    CAPTURE(row.key);
    const bool is_text = row.type.kind == Kind::text || row.type.kind == Kind::address ||
                         row.type.kind == Kind::list;
    if (is_text && row.key != "http.role") CHECK_FALSE(row.same_on_all_nodes);
  }
}

TEST_CASE("policies are compared with their order, roles without it") {
  Settings one;
  Settings other;
  one.policies = {policy("mail.*", "5"), policy("*", "7")};
  other.policies = one.policies;
  CHECK(differing(one, other).empty());
  std::ranges::reverse(other.policies);
  CHECK(differing(one, other) == std::set<std::string_view>{"policy"});
  other.policies = one.policies;
  one.roles = {role("web", "web-1"), role("ops", "ops-1")};
  CHECK(differing(one, other) == std::set<std::string_view>{"role"});
  other.roles = one.roles;
  std::ranges::reverse(other.roles);
  CHECK(differing(one, other).empty());
  other.roles[0].role.limits.put_rate = 9;
  CHECK(differing(one, other) == std::set<std::string_view>{"role"});
}

TEST_CASE("of listeners, authentication and roles are compared, not addresses or their number") {
  Settings one;
  Settings other;
  one.listeners = {listener(1, AuthMode::token, ""), listener(2, AuthMode::none, "web")};
  other.listeners = {listener(3, AuthMode::none, "web"), listener(4, AuthMode::token, ""),
                     listener(5, AuthMode::token, "")};
  other.listeners[1].kind = Listen::Kind::unix_socket;
  other.listeners[1].path = "/x";
  CHECK(differing(one, other).empty());
  other.listeners[0].role.clear();
  CHECK(differing(one, other) == std::set<std::string_view>{"listen"});
}

}  // namespace tubed::config
