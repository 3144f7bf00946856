// The names in the directory of a node, D, except for its journal.
#pragma once

namespace tubed::node {

// The raft log and the state of the node.
inline constexpr const char* kClusterFolder = "cluster";
// In D/cluster, if the cluster was recovered elsewhere; and in D, the identities of the clusters
// from which this one was recovered (former_clusters.h).
inline constexpr const char* kSupersededMarker = "cluster/superseded";
inline constexpr const char* kFormerFile = "cluster.former";
// In D: where other members say that they listen (learned_addresses.h).
inline constexpr const char* kAddressesFile = "cluster.addresses";
// The raft log and state of a node that has left its cluster, while they are being removed.
inline constexpr const char* kLeftFolder = "cluster.left";
// A state that is being fetched or installed: segments and the raft part.
inline constexpr const char* kFetchFolder = "fetch";
inline constexpr const char* kFetchCluster = "fetch/cluster";
// Markers of an installation (state_install.h).
inline constexpr const char* kCompleteMarker = "fetch/complete";
inline constexpr const char* kMovingMarker = "fetch/moving";

}  // namespace tubed::node
