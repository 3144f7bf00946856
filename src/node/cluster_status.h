// The state of a node for operators.
#pragma once

#include "cluster/node.h"
#include "stats/cluster.h"

namespace tubed::node {

// Sets the members of `state` that the node knows: its role, positions, term, lease, raft log and
// the members of the cluster. `applied` is the last entry applied by its replica. O(members).
void describe_node(const cluster::Node& node, cluster::Index applied, stats::ClusterState& state);

}  // namespace tubed::node
