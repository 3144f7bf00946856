// A voter is ready if the leader is connected to it, it has answered within the last second, and it
// lacks few entries. A restart takes one ready voter away, so the others must be a majority. What
// is said of a member's level follows the rule by which the leader raises the level: it is
// connected to each member, and all know a higher level.
#include "tubectl/cluster/upgrade.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tubectl/json.h"

namespace tubed::tubectl::cluster {
namespace {

using Names = std::vector<std::string>;

constexpr std::uint64_t kLowestLevel = 1;

// "b", "b and c" or "b, c and d".
std::string listed(const Names& names) {
  if (names.size() < 2) return names.empty() ? std::string() : names.front();
  return fmt::format("{} and {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

// Why a voter is not ready, as the leader sees it. No value: it is ready.
std::optional<std::string> not_ready(const State& state, const Member& member) {
  if (member.is_self) return std::nullopt;
  if (is_silent(member)) return silence_in_words(member);
  // It answers again soon, or becomes silent: it may have been stopped just now.
  if (!member.failure.empty()) return no_connection_to(member);
  return lack_of(state, member);
}

// Reasons in the number of voters that are ready.
void check_slack(const State& state, std::vector<std::string>& reasons) {
  const auto voters =
      static_cast<std::size_t>(std::ranges::count_if(state.members, &Member::votes));
  const std::size_t majority = voters / 2 + 1;
  if (voters < 3) {
    reasons.emplace_back(
        voters == 1 ? "the cluster has 1 voter: its restart interrupts the service"
                    : "the cluster has 2 voters: the restart of either interrupts the service");
  }
  std::size_t ready = 0;
  std::vector<std::string> texts;
  for (const Member& member : state.members) {
    if (!member.votes) continue;
    auto text = not_ready(state, member);
    ready += text ? 0 : 1;
    if (text) texts.push_back(std::move(*text));
  }
  if (ready > majority || texts.empty()) return;
  reasons.insert(reasons.end(), texts.begin(), texts.end());
  reasons.push_back(
      fmt::format("{} of {} voters {} ready, and {}", ready, voters, ready == 1 ? "is" : "are",
                  ready < majority ? "that is no majority" : "one more failure stops the cluster"));
}

std::vector<std::string> restart_reasons(const State& state) {
  if (state.role == "waiting") return {"this node has no state: it waits to be added to a cluster"};
  if (!state.leader) return {"no leader is known"};
  if (!state.leads()) {
    return {
        fmt::format("this node does not lead, and only the leader, {}, knows how far the "
                    "members are: run it there",
                    *state.leader)};
  }
  std::vector<std::string> reasons;
  if (state.lease && *state.lease == Milliseconds(0))
    reasons.emplace_back("the leader has no lease: a majority does not answer it");
  if (!state.has_final_members())
    reasons.emplace_back("the newest change of the members is not committed");
  check_slack(state, reasons);
  return reasons;
}

// Why a member keeps the level from rising. No value: it does not.
std::optional<std::string> level_waits_for(const State& state, const Member& member,
                                           std::uint64_t level) {
  if (is_silent(member)) return silence_in_words(member);
  if (!member.is_self && !member.failure.empty()) return no_connection_to(member);
  if (!member.level && !member.is_self && state.leads())
    return fmt::format("the level of {} is not known", member.name);
  if (member.level && *member.level <= level)
    return fmt::format("{} knows no higher level than {}", member.name, *member.level);
  return std::nullopt;
}

// The rank of a member in the order of an upgrade.
int rank_of(const Member& member) {
  return member.leads ? 2 : member.votes ? 1 : 0;
}

Names order_of(const State& state, const UpgradeCheck& check) {
  Names names;
  for (int rank = 0; rank <= 2; ++rank) {
    for (const Member& member : state.members) {
      const bool remains = !check.has_begun || member.level.value_or(kLowestLevel) < check.highest;
      if (remains && rank_of(member) == rank) names.push_back(member.name);
    }
  }
  return names;
}

std::string next_in_words(const UpgradeCheck& check) {
  if (check.order.empty()) return {};
  Names others = check.order;
  const bool leader_remains = others.back() == check.leader;
  if (leader_remains) others.pop_back();
  std::string text = check.has_begun ? "to be upgraded: " : "to upgrade: ";
  text += listed(others);
  if (leader_remains)
    text += fmt::format("{}the leader, {}, last", others.empty() ? "" : ", then ", check.leader);
  text += '\n';
  if (check.may_restart()) text += fmt::format("{} may be restarted now\n", check.order.front());
  return text;
}

}  // namespace

UpgradeCheck check_upgrade(const State& state) {
  UpgradeCheck check{.reasons = restart_reasons(state),
                     .level = state.level.value_or(kLowestLevel),
                     .leader = state.leader.value_or("")};
  std::uint64_t lowest = 0;
  for (const Member& member : state.members) {
    if (!member.level) continue;
    check.highest = std::max(check.highest, *member.level);
    lowest = lowest == 0 ? *member.level : std::min(lowest, *member.level);
  }
  check.has_begun = lowest != 0 && lowest < check.highest;
  check.order = order_of(state, check);
  if (check.highest <= check.level) return check;
  for (const Member& member : state.members) {
    if (auto text = level_waits_for(state, member, check.level))
      check.level_waits_for.push_back(std::move(*text));
  }
  return check;
}

std::string upgrade_text(const State& state, const UpgradeCheck& check, const Paint& paint) {
  std::string text = fmt::format("feature level {}, leader {}\n", check.level,
                                 check.leader.empty() ? "-" : check.leader);
  TextTable table({{"name"}, {"role"}, {"behind", true}, {"silent", true}, {"level", true}});
  for (const Member& member : state.members) {
    const auto behind = state.behind(member);
    table.add({{member.name},
               {std::string(role_of(member))},
               {behind ? fmt::format("{}", *behind) : "-",
                behind && *behind > kFarBehind ? Style::yellow : Style::plain},
               {member.silence ? in_words(*member.silence) : "-",
                is_silent(member) ? Style::red : Style::plain},
               {member.level ? fmt::format("{}", *member.level) : "-",
                member.level && *member.level < check.highest ? Style::yellow : Style::plain}});
  }
  if (!state.members.empty()) text += table.text(paint);
  if (check.highest <= check.level) {
    text += "no member knows a higher level\n";
  } else if (check.level_waits_for.empty()) {
    text += fmt::format("the level rises now: all members know a level above {}\n", check.level);
  } else {
    text += fmt::format("the level stays {}: {}\n", check.level,
                        fmt::join(check.level_waits_for, "; "));
  }
  return text + next_in_words(check);
}

std::string upgrade_json(const State& state, const UpgradeCheck& check) {
  const auto texts = [](const std::vector<std::string>& list) {
    return Json::array(std::vector<Json>(list.begin(), list.end()));
  };
  const auto number = [](const auto& value) { return value ? Json(*value) : Json(); };
  std::vector<Json> members;
  for (const Member& member : state.members) {
    members.push_back({{"name", member.name},
                       {"role", member.votes ? role_of(member) : "standby"},
                       {"behind", number(state.behind(member))},
                       {"silent_ms", member.silence ? Json(member.silence->count()) : Json()},
                       {"level", number(member.level)},
                       {"failure", member.failure.empty() ? Json() : Json(member.failure)}});
  }
  const bool has_next = check.may_restart() && !check.order.empty();
  return to_line(Json{{"may_restart", check.may_restart()},
                      {"reasons", texts(check.reasons)},
                      {"next", has_next ? Json(check.order.front()) : Json()},
                      {"order", texts(check.order)},
                      {"leader", check.leader.empty() ? Json() : Json(check.leader)},
                      {"has_begun", check.has_begun},
                      {"level", check.level},
                      {"highest_level", check.highest},
                      {"level_waits_for", texts(check.level_waits_for)},
                      {"members", Json::array(std::move(members))}});
}

}  // namespace tubed::tubectl::cluster
