// Founding: the state with which a cluster begins.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "cluster/levels.h"
#include "cluster/member.h"
#include "cluster/raft_log.h"
#include "cluster/types.h"
#include "facts/fact.h"
#include "journal/storage.h"

namespace tubed::cluster {

// Creates the state of a node that founds the cluster `log.cluster`. All founders use the same
// cluster and members. The journal of the node then begins with position
// founding_position(log.cluster). The cluster uses `level` from its beginning.
Result<void> found(journal::Storage& storage, const RaftLogOptions& log, NodeId node,
                   const std::vector<Member>& members, Level level = kFeatureLevel);
// Returns the position of the founders' configuration, which no raft log holds.
Applied founding_position(std::uint64_t cluster);

}  // namespace tubed::cluster
