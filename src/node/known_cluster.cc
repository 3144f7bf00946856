#include "node/known_cluster.h"

#include <algorithm>
#include <utility>

#include "stats/cluster.h"

namespace tubed::node {

namespace {

constexpr Duration kLookInterval = std::chrono::milliseconds(20);

}  // namespace

KnownCluster::Changes KnownCluster::look(const cluster::Node& node, Time now) {
  next_ = now + kLookInterval;
  Changes changes;
  std::vector<cluster::Member> members = node.members();
  changes.members = members != members_;
  members_ = std::move(members);
  const cluster::NodeId leader = node.leads() ? node.id() : node.leader();
  changes.leader = leader != 0 && (leader != leader_ || node.term() != term_);
  if (changes.leader) {
    leader_ = leader;
    term_ = node.term();
  }
  return changes;
}

const cluster::Member* KnownCluster::member(cluster::NodeId node) const {
  const auto member = std::ranges::find(members_, node, &cluster::Member::id);
  return member == members_.end() ? nullptr : &*member;
}

std::string KnownCluster::name_of(cluster::NodeId node) const {
  const cluster::Member* const found = member(node);
  return found == nullptr ? stats::id_text(node) : std::string(cluster::name_in(found->address));
}

}  // namespace tubed::node
