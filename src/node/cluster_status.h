// The state of a node for operators.
#pragma once

#include <cstdint>

#include "cluster/node.h"
#include "stats/cluster.h"

namespace tubed::node {

// Sets the members of `state` that the node knows: its role, positions, term, lease, raft log and
// the members of the cluster. `applied` is the last entry applied by its replica. O(members).
void describe_node(const cluster::Node& node, cluster::Index applied, stats::ClusterState& state);

// Returns the number that names a cluster in metrics, JSON and reports, in place of its identity,
// which nodes send each other: a hash from which the identity cannot be found. 0: no cluster.
std::uint64_t shown_cluster(std::uint64_t identity);

}  // namespace tubed::node
