// The first rows are lines of stats, which come after all others; most are metrics too. The rows
// without a key are metrics only. A row of a member becomes a family with one sample for each
// member, labelled with its name.
#include <algorithm>

#include "stats/rows.h"

namespace tubed::stats {

namespace {

using std::chrono::milliseconds;

std::string_view role_in_cluster(const ClusterNode& node) {
  if (node.leads) return "leader";
  return node.votes ? "voter" : "standby";
}

template <ClusterRole kRole>
constexpr Row<ClusterState> role_flag(std::string_view label, std::string_view meaning = {}) {
  return {.key = "",
          .meaning = meaning,
          .flag = [](const ClusterState& s) { return s.role == kRole; },
          .metric = {.family = "tubed_cluster_role", .label = label}};
}

std::uint64_t members(const ClusterState& state, bool votes) {
  return static_cast<std::uint64_t>(std::ranges::count(state.nodes, votes, &ClusterNode::votes));
}

constexpr Row<ClusterState> kCluster[] = {
    {.key = "cluster-name",
     .meaning = "The name of this node. Only in cluster mode, as the next seven.",
     .text = [](const ClusterState& s) -> std::string_view { return s.name; },
     .info_label = "node"},
    {.key = "cluster-role",
     .meaning = "waiting, fetching, standby, follower, candidate or leader.",
     .plain = [](const ClusterState& s) { return name_of(s.role); }},
    {.key = "cluster-leader",
     .meaning = "The name of the leader; empty: not known.",
     .text = [](const ClusterState& s) -> std::string_view { return s.leader; }},
    {.key = "cluster-term",
     .meaning = "The number of the election.",
     .number = [](const ClusterState& s) { return s.term; },
     .metric = {.family = "tubed_cluster_term"}},
    {.key = "cluster-commit-index",
     .meaning = "The last entry that a majority has.",
     .number = [](const ClusterState& s) { return s.committed; },
     .metric = {.family = "tubed_cluster_commit_index"}},
    {.key = "cluster-applied-index",
     .meaning = "The last entry that is in the queue of this node.",
     .number = [](const ClusterState& s) { return s.applied; },
     .metric = {.family = "tubed_cluster_applied_index"}},
    {.key = "cluster-held-over",
     .meaning = "Jobs that are held for clients of a former leader; 0 unless this node leads.",
     .number = [](const ClusterState& s) { return s.held_over; },
     .metric = {.family = "tubed_cluster_held_over_jobs"}},
    {.key = "cluster-nodes",
     .meaning = "The members, with a space between: NAME:ROLE:MATCH:SILENCE_MS. ROLE is leader, "
                "voter or standby, MATCH the last entry that the member is known to have, and "
                "SILENCE_MS the milliseconds since its last answer; -: not known.",
     .composed = nodes_text},
    // Metrics only.
    {.key = "",
     .meaning = {},
     .composed = [](const ClusterState& s) { return s.cluster == 0 ? "" : id_text(s.cluster); },
     .info_label = "cluster"},
    role_flag<ClusterRole::waiting>("role=\"waiting\"", "1 for the role of this node, else 0."),
    role_flag<ClusterRole::fetching>("role=\"fetching\""),
    role_flag<ClusterRole::standby>("role=\"standby\""),
    role_flag<ClusterRole::follower>("role=\"follower\""),
    role_flag<ClusterRole::candidate>("role=\"candidate\""),
    role_flag<ClusterRole::leader>("role=\"leader\""),
    {.key = "",
     .meaning = "1 on the leader.",
     .flag = [](const ClusterState& s) { return s.role == ClusterRole::leader; },
     .metric = {.family = "tubed_cluster_leads"}},
    {.key = "",
     .meaning = "1 on the node that serves clients: it leads, and has everything that was "
                "acknowledged.",
     .flag = [](const ClusterState& s) { return s.serves; },
     .metric = {.family = "tubed_cluster_serves"}},
    {.key = "",
     .meaning = "The last entry that the disk of this node has.",
     .number = [](const ClusterState& s) { return s.stored; },
     .metric = {.family = "tubed_cluster_stored_index"}},
    {.key = "",
     .meaning = "Members by whether they vote.",
     .number = [](const ClusterState& s) { return members(s, true); },
     .metric = {.family = "tubed_cluster_members", .label = "kind=\"voter\""}},
    {.key = "",
     .meaning = {},
     .number = [](const ClusterState& s) { return members(s, false); },
     .metric = {.family = "tubed_cluster_members", .label = "kind=\"standby\""}},
    {.key = "",
     .meaning = "How much longer the lease of the leader lasts; 0: it has none.",
     .seconds = [](const ClusterState& s) { return s.lease; },
     .metric = {.family = "tubed_cluster_lease_seconds"}},
    {.key = "",
     .meaning = "Bytes of the raft log.",
     .number = [](const ClusterState& s) { return s.raft_log_bytes; },
     .metric = {.family = "tubed_cluster_raft_log_bytes"}},
    {.key = "",
     .meaning = "cluster.log_size.",
     .number = [](const ClusterState& s) { return s.raft_log_limit; },
     .metric = {.family = "tubed_cluster_raft_log_limit_bytes"}},
    {.key = "",
     .meaning = "1 while the raft log waits for room.",
     .flag = [](const ClusterState& s) { return s.raft_log_full; },
     .metric = {.family = "tubed_cluster_raft_log_full"}},
    {.key = "",
     .meaning = "Elections that this node has won.",
     .number = [](const ClusterState& s) { return s.elections; },
     .metric = {.family = "tubed_cluster_elections_won_total", .type = MetricType::counter}},
    {.key = "",
     .meaning = "Leaderships that this node has lost.",
     .number = [](const ClusterState& s) { return s.leaderships_lost; },
     .metric = {.family = "tubed_cluster_leaderships_lost_total", .type = MetricType::counter}},
    {.key = "",
     .meaning = "How often replies had to wait because the lease had ended.",
     .number = [](const ClusterState& s) { return s.leases_lost; },
     .metric = {.family = "tubed_cluster_leases_lost_total", .type = MetricType::counter}},
    {.key = "",
     .meaning = "How often this node has fetched the state of another node.",
     .number = [](const ClusterState& s) { return s.fetches; },
     .metric = {.family = "tubed_cluster_fetches_total", .type = MetricType::counter}},
    {.key = "",
     .meaning = "How often this node, as the leader, needed more than half an election timeout to "
                "send changes to another node.",
     .number = [](const ClusterState& s) { return s.slow_appends; },
     .metric = {.family = "tubed_cluster_slow_appends_total", .type = MetricType::counter}},
    {.key = "",
     .meaning = "Clients that this node passes to the leader, or that wait for one.",
     .number = [](const ClusterState& s) { return s.forwarded; },
     .metric = {.family = "tubed_cluster_forwarded_clients"}},
    {.key = "",
     .meaning = "On the leader: how many of the voters that answer may fail before no majority "
                "answers.",
     .number = [](const ClusterState& s) { return *spare_voters(s); },
     .metric = {.family = "tubed_cluster_spare_voters"},
     .shown = [](const ClusterState& s) { return spare_voters(s).has_value(); }},
    {.key = "",
     .meaning = "The feature level that the cluster uses.",
     .number = [](const ClusterState& s) { return std::uint64_t{s.feature_level}; },
     .metric = {.family = "tubed_cluster_feature_level"}},
    {.key = "",
     .meaning = "cluster.election_timeout of this node.",
     .seconds = [](const ClusterState& s) { return s.election_timeout; },
     .metric = {.family = "tubed_cluster_election_timeout_seconds"}},
    {.key = "",
     .meaning = "Settings that should be the same on all nodes, and differ, as far as this "
                "node knows.",
     .number = [](const ClusterState& s) { return std::uint64_t{s.differing.size()}; },
     .metric = {.family = "tubed_cluster_settings_differ"}},
};

constexpr Row<ClusterNode> kClusterNode[] = {
    {.key = "",
     .meaning = "On the leader: the last entry that a member is known to have.",
     .number = [](const ClusterNode& n) { return *n.match; },
     .metric = {.family = "tubed_cluster_node_match_index"},
     .shown = [](const ClusterNode& n) { return n.match.has_value(); }},
    {.key = "",
     .meaning = "On the leader: how long ago another member has answered.",
     .seconds = [](const ClusterNode& n) { return *n.silence; },
     .metric = {.family = "tubed_cluster_node_silence_seconds"},
     .shown = [](const ClusterNode& n) { return n.silence.has_value() && !n.is_self; }},
    {.key = "",
     .meaning = "On the leader: the bytes per second that the link to another member carries, as "
                "measured when changes filled it.",
     .number = [](const ClusterNode& n) { return n.link_rate; },
     .metric = {.family = "tubed_cluster_node_link_bytes_per_second"},
     .shown = [](const ClusterNode& n) { return n.link_rate != 0; }},
    {.key = "",
     .meaning =
         "On the leader: how long ago the oldest entry was appended that the disk of another "
         "member lacks; 0: it has all.",
     .seconds = [](const ClusterNode& n) { return *n.lag; },
     .metric = {.family = "tubed_cluster_node_lag_seconds"},
     .shown = [](const ClusterNode& n) { return n.lag.has_value() && !n.is_self; }},
    {.key = "",
     .meaning =
         "The highest feature level that a member knows, once this node was connected to it.",
     .number = [](const ClusterNode& n) { return std::uint64_t{n.level}; },
     .metric = {.family = "tubed_cluster_node_level"},
     .shown = [](const ClusterNode& n) { return n.level != 0; }},
    {.key = "",
     .meaning = "On the leader: how far the wall clock of another member is from the leader's.",
     .seconds = [](const ClusterNode& n) { return *n.clock_difference; },
     .metric = {.family = "tubed_cluster_node_clock_difference_seconds"},
     .shown = [](const ClusterNode& n) { return n.clock_difference.has_value(); }},
};

}  // namespace

Rows<ClusterState> cluster_rows() {
  return kCluster;
}

Rows<ClusterNode> cluster_node_rows() {
  return kClusterNode;
}

std::optional<std::uint64_t> spare_voters(const ClusterState& state) {
  if (state.role != ClusterRole::leader) return std::nullopt;
  constexpr Duration kSilent = std::chrono::seconds(5);
  std::uint64_t voters = 0;
  std::uint64_t answering = 0;
  for (const ClusterNode& node : state.nodes) {
    if (!node.votes) continue;
    ++voters;
    if (node.is_self || (node.silence && *node.silence < kSilent)) ++answering;
  }
  const std::uint64_t majority = voters / 2 + 1;
  return answering > majority ? answering - majority : 0;
}

std::string nodes_text(const ClusterState& state) {
  std::string text;
  for (const ClusterNode& node : state.nodes) {
    if (!text.empty()) text.push_back(' ');
    text.append(node.name).append(":").append(role_in_cluster(node));
    text.append(":").append(node.match ? std::to_string(*node.match) : "-").append(":");
    text.append(node.silence ? std::to_string(*node.silence / milliseconds(1)) : "-");
  }
  return text;
}

std::string id_text(std::uint64_t id) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(16, '0');
  for (auto digit = text.rbegin(); id != 0; id >>= 4) *digit++ = kDigits[id & 15];
  return text;
}

}  // namespace tubed::stats
