// KnownCluster: the members and the leader of the cluster, as this node knew them when it last
// looked. It looks at intervals, because a node may learn much in a tick.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "cluster/member.h"
#include "cluster/node.h"

namespace tubed::node {

class KnownCluster {
 public:
  struct Changes {
    bool members = false;
    bool leader = false;  // another leader, or another term of the same; false if none is known
  };
  // Returns what has changed since the last look. `now` is by the node's clock, here and below.
  // O(members).
  Changes look(const cluster::Node& node, Time now);
  bool is_due(Time now) const { return now >= next_; }

  const std::vector<cluster::Member>& members() const { return members_; }
  // Returns null if no such member exists. O(members).
  const cluster::Member* member(cluster::NodeId node) const;
  // Returns the name of the member, or the id if no such member exists. O(members).
  std::string name_of(cluster::NodeId node) const;
  // The last leader that was known, and its term; 0: none.
  cluster::NodeId leader() const { return leader_; }
  cluster::Term term() const { return term_; }

 private:
  std::vector<cluster::Member> members_;
  cluster::NodeId leader_ = 0;
  cluster::Term term_ = 0;
  Time next_ = Time::min();
};

}  // namespace tubed::node
