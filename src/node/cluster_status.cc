#include "node/cluster_status.h"

#include <algorithm>
#include <array>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/assert.h"
#include "journal/little_endian.h"
#include "node/node_owner.h"

namespace tubed::node {

namespace {

using stats::ClusterRole;

// The lease of a single voter has no end (kNever).
constexpr Duration kLongestLease = std::chrono::hours(1);

constexpr std::string_view kShownCluster = "tubed 1: shown name of a cluster";

ClusterRole role_of(const cluster::Node& node, const cluster::Member* itself) {
  if (node.leads()) return ClusterRole::leader;
  if (node.core().is_candidate()) return ClusterRole::candidate;
  const bool votes = itself != nullptr && itself->role == cluster::MemberRole::voter;
  return votes ? ClusterRole::follower : ClusterRole::standby;
}

stats::ClusterNode described(const cluster::Node& node, const cluster::Member& member,
                             cluster::NodeId leader, Time now) {
  const auto address = cluster::parse_member_address(member.address);
  stats::ClusterNode described{.name = std::string(cluster::name_in(member.address)),
                               .id = member.id,
                               .address = address ? address->endpoint() : member.address,
                               .votes = member.role == cluster::MemberRole::voter,
                               .leads = member.id == leader,
                               .is_self = member.id == node.id()};
  described.stays = member.stays;
  if (described.is_self) described.level = node.known_level();
  if (!node.leads()) return described;
  described.match = described.is_self ? node.log().stored() : node.match(member.id);
  described.lag = node.lag(member.id);
  described.clock_difference = node.clock_difference(member.id);
  if (described.is_self) {
    described.silence = Duration::zero();
  } else if (const auto since = node.silent_since(member.id)) {
    described.silence = std::max(now - *since, Duration::zero());
    described.link_rate = static_cast<std::uint64_t>(node.appends().rate(member.id));
  }
  return described;
}

}  // namespace

void describe_node(const cluster::Node& node, cluster::Index applied, stats::ClusterState& state) {
  const Time now = NodeOwner::now();
  const std::vector<cluster::Member> members = node.members();
  const auto itself = std::ranges::find(members, node.id(), &cluster::Member::id);
  const cluster::NodeId leader = node.leads() ? node.id() : node.leader();
  state.role = role_of(node, itself == members.end() ? nullptr : &*itself);
  state.term = node.term();
  state.feature_level = node.level();
  state.committed = node.committed();
  state.members_index = node.configurations().newest();
  state.applied = applied;
  state.stored = node.log().stored();
  const Time lease_end = node.lease_end();
  state.lease =
      lease_end > now ? std::min<Duration>(kLongestLease, lease_end - now) : Duration::zero();
  state.raft_log_bytes = node.log().bytes();
  state.leader.clear();
  state.nodes.clear();
  for (const cluster::Member& member : members) {
    state.nodes.push_back(described(node, member, leader, now));
    if (state.nodes.back().leads) state.leader = state.nodes.back().name;
  }
}

std::uint64_t shown_cluster(std::uint64_t identity) {
  if (identity == 0) return 0;
  std::array<char, sizeof identity> text{};
  journal::store_little(text.data(), identity);
  std::array<unsigned char, 32> hash{};
  unsigned size = 0;
  TUBED_ASSERT(HMAC(EVP_sha256(), kShownCluster.data(), static_cast<int>(kShownCluster.size()),
                    reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data(),
                    &size) != nullptr);
  return journal::load_little<std::uint64_t>(reinterpret_cast<const char*>(hash.data()));
}

}  // namespace tubed::node
