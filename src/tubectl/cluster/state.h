// State: a cluster as one of its nodes reports it: the members, warnings, its health.
//
// Pure: read from the document of GET /cluster, and rendered as text. A node that does not lead
// reports its own part; it need not know how far the other members are. All text of the server has
// passed one_line().
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tubectl/terminal.h"

namespace tubed::tubectl::cluster {

using Milliseconds = std::chrono::milliseconds;

struct Member {
  std::string name{};
  std::string address{};
  bool votes = false;
  bool leads = false;
  bool is_self = false;
  std::optional<std::uint64_t> match{};   // the last entry that the member is known to have
  std::optional<Milliseconds> silence{};  // since its last answer
  std::optional<std::uint64_t> level{};   // the highest feature level that it knows
  std::string failure{};  // why the reporting node has no connection to it; empty: not known
  std::optional<Milliseconds> lag{};  // since the oldest entry that it lacks was appended
  bool stays = false;                 // a standby that does not vote until it is promoted
  std::optional<Milliseconds> clock_difference{};  // from the leader's wall clock
  // Where it is reached, or listens if it is the reporting node, if that is not `address`.
  std::string reached_at{};
};

// A setting that differs between nodes: names of nodes, those with the same value together.
struct DifferingSetting {
  std::string name{};
  std::vector<std::vector<std::string>> nodes{};
};

struct State {
  std::string name;  // of the reporting node
  std::string cluster;
  std::string role;
  std::optional<std::string> leader;
  std::uint64_t term = 0;
  std::uint64_t committed = 0;  // indexes of the last entries
  std::uint64_t stored = 0;
  std::uint64_t members_index = 0;    // of the newest change of the members; 0: not reported
  std::optional<Milliseconds> lease;  // time left; no value: the node does not lead
  std::optional<std::uint64_t> raft_log_bytes;
  std::optional<std::uint64_t> raft_log_limit;
  std::uint64_t held_over = 0;
  std::optional<std::uint64_t> level;  // the feature level in use; no value: not reported
  std::vector<Member> members;
  std::vector<DifferingSetting> differing{};

  // Returns null if no such member exists. O(members).
  const Member* find(std::string_view member) const;
  // The number of entries that the member lacks. No value: the node does not know it.
  std::optional<std::uint64_t> behind(const Member& member) const;
  bool leads() const { return leader == name; }
  // True if no leader can undo the newest change of the members.
  bool has_final_members() const { return committed >= members_index; }
  // True if the member is known to lack the newest change of the members. A voter that lacks the
  // change that made it one elects no leader.
  bool lacks_change(const Member& member) const {
    return member.match && *member.match < members_index;
  }
};

// Ignores unknown keys. Fails if the document is not the state of a cluster.
Result<State> read_state(std::string_view document);

// The reporting node is never silent to itself.
bool is_silent(const Member& member);
// "leader", "voter", "standby" or "standby, stays".
std::string_view role_of(const Member& member);
// "b has been silent for 2.5 s", and the reason if it is known. Precondition: is_silent().
std::string silence_in_words(const Member& member);
// "no connection to b: ", and the reason. Precondition: the reason is known.
std::string no_connection_to(const Member& member);
// Returns what a member lacks, as the leader sees it: an answer, many entries, or the newest change
// of the members. No value: nothing.
std::optional<std::string> lack_of(const State& state, const Member& member);
// Returns which voters keep a standby that has caught up from its vote, as the leader sees it,
// because they are silent or lack the newest change of the members. No value: none. O(members).
std::optional<std::string> what_vote_waits_for(const State& state, const Member& member);
// "12 ms", "2.5 s" or "1 h".
std::string in_words(Milliseconds time);
// A line about the cluster and this node, and a table of the members.
std::string overview(const State& state, const Paint& paint);
// Warnings for an operator, a line each. `before` is the state `between` ago, or null.
std::vector<std::string> warnings(const State& state, const State* before, Milliseconds between);
// True if a member is not known to have all entries; another query shows whether it advances.
bool has_standby_behind(const State& state);

inline constexpr Milliseconds kSilent{1000};
inline constexpr std::uint64_t kFarBehind = 1000;
inline constexpr Milliseconds kClockDiffers{1000};

// The reasons why the cluster is not healthy. It is healthy (empty) if a leader is known, all
// members but standbys that stay vote, all are not silent and lack at most kFarBehind entries, and
// they have the newest change of the members, which is committed.
std::vector<std::string> shortcomings(const State& state);
// True if the node follows a leader. It does not know how far other members are, so it cannot say
// whether the cluster is healthy.
bool knows_only_itself(const State& state);

}  // namespace tubed::tubectl::cluster
