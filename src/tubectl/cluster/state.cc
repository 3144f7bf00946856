// read_state() reads the keys that it needs from the document and checks only their types; a later
// server may report more. The text for users consists of sentences that name one member each;
// status prints them as warnings, a wait as the reason why it continues.
#include "tubectl/cluster/state.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tubectl/json.h"

namespace tubed::tubectl::cluster {
namespace {

std::string text_of(const Json& object, std::string_view key) {
  const Json* const value = object.find(key);
  const std::string* const text = value != nullptr ? value->text() : nullptr;
  return text != nullptr ? one_line(*text) : std::string();
}

std::optional<std::uint64_t> number_of(const Json& object, std::string_view key) {
  const Json* const value = object.find(key);
  return value != nullptr ? value->number() : std::nullopt;
}

bool is_true(const Json& object, std::string_view key) {
  const Json* const value = object.find(key);
  return value != nullptr && value->truth() == true;
}

// Limits a time to a hundred years, to prevent overflows.
std::optional<Milliseconds> time_of(const Json& object, std::string_view key) {
  constexpr std::uint64_t kLongest = 100ULL * 365 * 24 * 3600 * 1000;
  const auto number = number_of(object, key);
  if (!number) return std::nullopt;
  return Milliseconds(static_cast<std::int64_t>(std::min(*number, kLongest)));
}

std::optional<Member> member_of(const Json& value) {
  if (!value.is_object()) return std::nullopt;
  Member member{.name = text_of(value, "name"),
                .address = text_of(value, "address"),
                .votes = is_true(value, "votes"),
                .leads = is_true(value, "leads"),
                .is_self = is_true(value, "self"),
                .match = number_of(value, "match"),
                .silence = time_of(value, "silent_ms"),
                .level = number_of(value, "level"),
                .failure = text_of(value, "failure"),
                .lag = time_of(value, "lag_ms"),
                .stays = is_true(value, "stays"),
                .clock_difference = time_of(value, "clock_difference_ms"),
                .reached_at = text_of(value, "reached_at")};
  if (member.name.empty()) return std::nullopt;
  return member;
}

std::optional<DifferingSetting> differing_of(const Json& value) {
  if (!value.is_object()) return std::nullopt;
  DifferingSetting setting{.name = text_of(value, "name"), .nodes = {}};
  const Json* const groups = value.find("nodes");
  if (groups == nullptr || groups->elements() == nullptr) return std::nullopt;
  for (const Json& group : *groups->elements()) {
    if (group.elements() == nullptr) return std::nullopt;
    setting.nodes.emplace_back();
    for (const Json& node : *group.elements()) {
      if (node.text() == nullptr) return std::nullopt;
      setting.nodes.back().push_back(one_line(*node.text()));
    }
  }
  return setting;
}

// "the setting limits.job_bytes differs: a and c have one value, b has another"
std::string difference_in_words(const DifferingSetting& setting) {
  std::string text = fmt::format("the setting {} differs:", setting.name);
  std::string_view which = "one value";
  for (const auto& nodes : setting.nodes) {
    std::string names;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const bool is_last = i + 1 == nodes.size();
      names += fmt::format("{}{}", i == 0 ? "" : is_last ? " and " : ", ", nodes[i]);
    }
    text += fmt::format("{}{} {} {}", which == "another" ? ", " : " ", names,
                        nodes.size() == 1 ? "has" : "have", which);
    which = "another";
  }
  return text;
}

std::string entries(std::uint64_t number) {
  return number == 1 ? "1 entry" : fmt::format("{} entries", number);
}

// A healthy number of voters is odd, and at least three.
std::optional<std::string> voters_in_words(const State& state) {
  const auto voters = std::ranges::count_if(state.members, &Member::votes);
  if (voters == 0) return std::nullopt;
  if (voters == 1) return "one voter: nothing is replicated; three survive the loss of one";
  if (voters == 2) {
    return "two voters: the loss of either stops the cluster; three survive the loss of one";
  }
  if (voters % 2 == 0) {
    return fmt::format("{} voters survive the loss of no more than {} do: an odd number is better",
                       voters, voters - 1);
  }
  return std::nullopt;
}

std::string first_line(const State& state) {
  std::string line =
      fmt::format("cluster {}  this node {} ({})  leader {}  term {}  committed {}", state.cluster,
                  state.name, state.role, state.leader.value_or("-"), state.term, state.committed);
  line += fmt::format("  lease {}", state.lease ? in_words(*state.lease) : "-");
  if (state.held_over > 0) line += fmt::format("  held over {}", state.held_over);
  if (state.level) line += fmt::format("  level {}", *state.level);
  return line;
}

// Reports a member that has moved.
std::optional<std::string> other_address_of(const Member& member) {
  if (member.reached_at.empty()) return std::nullopt;
  return fmt::format("{} {} {}, and not at its address: tubectl cluster set-address {} {}",
                     member.name, member.is_self ? "listens at" : "is reached at",
                     member.reached_at, member.name, member.reached_at);
}

// Reports a standby that has as many entries as before.
std::optional<std::string> standstill(const State& state, const Member& member, const State& before,
                                      Milliseconds between) {
  const Member* const was = before.find(member.name);
  if (was == nullptr || member.votes || was->match != member.match) return std::nullopt;
  const auto behind = state.behind(member);
  if (!behind || *behind == 0) return std::nullopt;
  return fmt::format("the standby {} has not advanced for {}: it lacks {}, or fetches the state",
                     member.name, in_words(between), entries(*behind));
}

}  // namespace

std::string_view role_of(const Member& member) {
  if (member.leads) return "leader";
  if (member.votes) return "voter";
  return member.stays ? "standby, stays" : "standby";
}

bool is_silent(const Member& member) {
  return !member.is_self && member.silence && *member.silence >= kSilent;
}

std::string silence_in_words(const Member& member) {
  std::string text =
      fmt::format("{} has been silent for {}", member.name, in_words(*member.silence));
  if (!member.failure.empty()) text += ": " + member.failure;
  return text;
}

std::string no_connection_to(const Member& member) {
  return fmt::format("no connection to {}: {}", member.name, member.failure);
}

std::optional<std::string> lack_of(const State& state, const Member& member) {
  const auto behind = state.behind(member);
  const bool is_heard = member.is_self || member.silence;
  if (!is_heard || !behind) return fmt::format("{} has not answered", member.name);
  if (*behind > kFarBehind) return fmt::format("{} lacks {}", member.name, entries(*behind));
  if (state.has_final_members() && state.lacks_change(member))
    return fmt::format("{} lacks the newest change of the members", member.name);
  return std::nullopt;
}

std::optional<std::string> what_vote_waits_for(const State& state, const Member& member) {
  if (member.votes || member.stays || is_silent(member)) return std::nullopt;
  if (state.behind(member).value_or(UINT64_MAX) > kFarBehind) return std::nullopt;
  std::size_t voters = 0;
  std::vector<std::string_view> silent;
  std::vector<std::string_view> lacking;
  for (const Member& other : state.members) {
    if (!other.votes) continue;
    ++voters;
    if (is_silent(other)) {
      silent.push_back(other.name);
    } else if (state.lacks_change(other)) {
      lacking.push_back(other.name);
    }
  }
  const std::size_t missing = silent.size() + lacking.size();
  if (missing == 0 || 2 * (voters - missing) > voters + 1) return std::nullopt;
  const std::string names = fmt::format("{}", fmt::join(silent.empty() ? lacking : silent, " or "));
  return fmt::format("{} votes when it has caught up and {} {}; or remove {}", member.name, names,
                     silent.empty() ? "has the newest change of the members" : "answers", names);
}

const Member* State::find(std::string_view member) const {
  const auto found = std::ranges::find(members, member, &Member::name);
  return found != members.end() ? &*found : nullptr;
}

std::optional<std::uint64_t> State::behind(const Member& member) const {
  const auto match = member.match || !member.is_self ? member.match : stored;
  if (!match) return std::nullopt;
  return committed > *match ? committed - *match : 0;
}

Result<State> read_state(std::string_view document) {
  const auto json = Json::parse_document(document);
  const Error not_a_state{"the answer is not the state of a cluster"};
  if (!json || !json->is_object()) return not_a_state;
  const Json* const members = json->find("members");
  State state{.name = text_of(*json, "name"),
              .cluster = text_of(*json, "cluster"),
              .role = text_of(*json, "role"),
              .leader = std::nullopt,
              .term = number_of(*json, "term").value_or(0),
              .committed = number_of(*json, "committed").value_or(0),
              .stored = number_of(*json, "stored").value_or(0),
              .members_index = number_of(*json, "members_index").value_or(0),
              .lease = time_of(*json, "lease_ms"),
              .raft_log_bytes = number_of(*json, "raft_log_bytes"),
              .raft_log_limit = number_of(*json, "raft_log_limit"),
              .held_over = number_of(*json, "held_over").value_or(0),
              .level = number_of(*json, "feature_level"),
              .members = {}};
  if (auto leader = text_of(*json, "leader"); !leader.empty()) state.leader = std::move(leader);
  if (state.name.empty() || state.role.empty() || members == nullptr ||
      members->elements() == nullptr) {
    return not_a_state;
  }
  for (const Json& value : *members->elements()) {
    auto member = member_of(value);
    if (!member) return not_a_state;
    state.members.push_back(std::move(*member));
  }
  const Json* const differing = json->find("settings_differ");  // a later key: not every server's
  if (differing == nullptr || differing->elements() == nullptr) return state;
  for (const Json& value : *differing->elements()) {
    auto setting = differing_of(value);
    if (!setting) return not_a_state;
    state.differing.push_back(std::move(*setting));
  }
  return state;
}

std::string in_words(Milliseconds time) {
  const auto count = time.count();
  if (count < 1000) return fmt::format("{} ms", count);
  if (count < 60'000) return fmt::format("{:.1f} s", static_cast<double>(count / 100) / 10);
  if (count < 3'600'000) return fmt::format("{} min", count / 60'000);
  return fmt::format("{} h", count / 3'600'000);
}

std::string overview(const State& state, const Paint& paint) {
  TextTable table({{"name"},
                   {"address"},
                   {"role"},
                   {"match", true},
                   {"behind", true},
                   {"silent", true},
                   {"level", true},
                   {"lag", true}});
  for (const Member& member : state.members) {
    const auto behind = state.behind(member);
    const Style role = member.leads ? Style::green : member.votes ? Style::plain : Style::yellow;
    table.add({{member.name},
               {member.address},
               {std::string(role_of(member)), role},
               {member.match ? fmt::format("{}", *member.match) : "-"},
               {behind ? fmt::format("{}", *behind) : "-",
                behind && *behind > kFarBehind ? Style::yellow : Style::plain},
               {member.silence ? in_words(*member.silence) : "-",
                is_silent(member) ? Style::red : Style::plain},
               {member.level ? fmt::format("{}", *member.level) : "-"},
               {member.lag ? in_words(*member.lag) : "-"}});
  }
  const std::string members = state.members.empty() ? std::string() : table.text(paint);
  return first_line(state) + "\n" + members;
}

std::vector<std::string> warnings(const State& state, const State* before, Milliseconds between) {
  std::vector<std::string> texts;
  if (state.role == "waiting") {
    texts.emplace_back("this node has no state: it waits until a member of a cluster adds it");
  } else if (!state.leader) {
    texts.emplace_back("no leader is known: clients are not served");
  }
  if (auto voters = voters_in_words(state)) texts.push_back(std::move(*voters));
  for (const Member& member : state.members) {
    if (is_silent(member)) {
      texts.push_back(silence_in_words(member));
    } else if (!member.is_self && !member.failure.empty()) {
      texts.push_back(no_connection_to(member));
    } else if (state.leads() && !member.is_self && !member.silence) {
      texts.push_back(
          fmt::format("{} has not answered yet: is a node at {}?", member.name, member.address));
    } else if (before != nullptr) {
      if (auto text = standstill(state, member, *before, between)) {
        texts.push_back(std::move(*text));
      }
    }
  }
  for (const Member& member : state.members) {
    if (auto text = what_vote_waits_for(state, member)) texts.push_back(std::move(*text));
  }
  for (const Member& member : state.members) {
    if (member.clock_difference && *member.clock_difference > kClockDiffers) {
      texts.push_back(fmt::format("the clock of {} differs by {} from the leader's: does NTP run?",
                                  member.name, in_words(*member.clock_difference)));
    }
  }
  for (const Member& member : state.members) {
    if (auto text = other_address_of(member)) texts.push_back(std::move(*text));
  }
  for (const auto& setting : state.differing) texts.push_back(difference_in_words(setting));
  if (state.raft_log_bytes && state.raft_log_limit &&
      *state.raft_log_bytes > *state.raft_log_limit / 2) {
    texts.push_back(fmt::format("the raft log has {} bytes, more than half of its bound of {}",
                                *state.raft_log_bytes, *state.raft_log_limit));
  }
  if (knows_only_itself(state)) {
    texts.push_back(fmt::format("this node does not lead: only {} knows how far the members are",
                                *state.leader));
  }
  return texts;
}

bool has_standby_behind(const State& state) {
  return std::ranges::any_of(state.members, [&](const Member& member) {
    return !member.votes && state.behind(member).value_or(0) > 0;
  });
}

std::vector<std::string> shortcomings(const State& state) {
  std::vector<std::string> texts;
  if (!state.leader) texts.emplace_back("no leader is known");
  if (state.members.empty()) texts.emplace_back("no member is known");
  if (!state.has_final_members())
    texts.emplace_back("the newest change of the members is not committed");
  for (const Member& member : state.members) {
    if (!member.votes && !member.stays)
      texts.push_back(fmt::format("{} does not vote", member.name));
    if (is_silent(member)) texts.push_back(silence_in_words(member));
    if (auto text = lack_of(state, member)) texts.push_back(std::move(*text));
  }
  return texts;
}

bool knows_only_itself(const State& state) {
  return state.leader && !state.leads() &&
         std::ranges::any_of(state.members, [](const auto& member) {
           return !member.is_self && (!member.match || !member.silence);
         });
}

}  // namespace tubed::tubectl::cluster
