// ClusterState: the cluster as one of its nodes sees it, for stats, the metrics and operators. The
// server fills it; stats and the metrics read it in rows.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace tubed::stats {

enum class ClusterRole : std::uint8_t { waiting, fetching, standby, follower, candidate, leader };

constexpr std::string_view name_of(ClusterRole role) {
  switch (role) {
    case ClusterRole::waiting:
      return "waiting";
    case ClusterRole::fetching:
      return "fetching";
    case ClusterRole::standby:
      return "standby";
    case ClusterRole::follower:
      return "follower";
    case ClusterRole::candidate:
      return "candidate";
    case ClusterRole::leader:
      return "leader";
  }
  return "";
}

// A cluster has no more members.
inline constexpr std::size_t kMostClusterNodes = 64;

struct ClusterNode {
  std::string name;
  std::uint64_t id = 0;
  std::string address = {};  // HOST:PORT
  bool votes = false;
  bool leads = false;
  bool is_self = false;
  // On the leader: the last entry that the node is known to have, and how long ago it answered, or,
  // if it has not answered this leader yet, how long ago it was added or the leader elected.
  std::optional<std::uint64_t> match = {};
  std::optional<Duration> silence = {};
  std::uint64_t link_rate = 0;  // bytes per second of the leader's link to it; 0: not known
  std::uint16_t level = 0;      // the highest feature level that the node knows; 0: not known
  // Why this node has no connection to it, for people; empty: it has one, or waits for an answer.
  std::string failure = {};
  // On the leader: how long ago the oldest entry was appended that the disk of the node lacks; 0:
  // it has all.
  std::optional<Duration> lag = {};
  bool stays = false;  // a standby that does not become a voter by itself
  // On the leader: how far the wall clock of the node was from the leader's at its last answer.
  std::optional<Duration> clock_difference = {};
  // HOST:PORT at which this node reaches it, if that is not `address`: it says so itself. Of this
  // node: where it says that it listens.
  std::string reached_at = {};
};

// A setting that should be the same on all nodes, and differs: the names of the nodes in order,
// those with the same value together, at least two groups.
struct DifferingSetting {
  std::string name;
  std::vector<std::vector<std::string>> nodes;

  friend bool operator==(const DifferingSetting&, const DifferingSetting&) = default;
};

struct ClusterState {
  std::string name;  // of this node
  std::uint64_t id = 0;
  std::uint64_t cluster = 0;  // shown_cluster() of its identity; 0: the node belongs to none yet
  ClusterRole role = ClusterRole::waiting;
  bool serves = false;      // it leads, and has everything that was acknowledged
  std::string leader = {};  // name; empty: not known
  std::uint64_t term = 0;
  std::uint16_t feature_level = 1;  // in use in the cluster
  std::uint64_t committed = 0;      // index of the last entry, as the next two
  std::uint64_t applied = 0;
  std::uint64_t stored = 0;
  // The entry with the newest change of the members; not final until it is committed.
  std::uint64_t members_index = 0;
  Duration lease{};  // how much longer the lease lasts; 0: none
  std::uint64_t raft_log_bytes = 0;
  std::uint64_t raft_log_limit = 0;  // cluster.log_size
  bool raft_log_full = false;
  // Jobs that are held for clients of a former leader; 0 on a node that does not lead.
  std::uint64_t held_over = 0;
  // While the node fetches the state of another node: bytes so far, and of all; 0: not known.
  std::uint64_t fetched_bytes = 0;
  std::uint64_t fetch_bytes = 0;
  // Since the start of the process.
  std::uint64_t elections = 0;  // won by this node
  std::uint64_t leaderships_lost = 0;
  std::uint64_t leases_lost = 0;   // replies had to wait because the lease had ended
  std::uint64_t fetches = 0;       // of the state, by this node
  std::uint64_t slow_appends = 0;  // by this node, of more than half an election timeout
  std::uint64_t forwarded = 0;     // clients of this node that are passed to the leader, or wait
  std::vector<ClusterNode> nodes = {};           // members, in the order of the configuration
  Duration election_timeout{};                   // cluster.election_timeout of this node
  std::vector<DifferingSetting> differing = {};  // as far as this node knows
};

// On the leader: how many of the voters that answer may fail before no majority answers; 0: the
// next failure stops the cluster. Nothing: this node does not lead. O(nodes).
std::optional<std::uint64_t> spare_voters(const ClusterState& state);

// The members in one line, with a space between: NAME:ROLE:MATCH:SILENCE_MS, where ROLE is leader,
// voter or standby, and - is a number that is not known. O(nodes).
std::string nodes_text(const ClusterState& state);
// An id as operators see it: 16 hexadecimal digits.
std::string id_text(std::uint64_t id);

}  // namespace tubed::stats
