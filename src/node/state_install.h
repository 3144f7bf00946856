// Installing: the state in D/fetch (state_fetch.h) becomes that of the node with the directory D.
//
// The steps, each durable before the next:
//  1. The state of the node is stored in D/fetch/cluster.
//  2. The marker D/fetch/complete is stored. Until here the old state counts, and D/fetch is
//     dropped after an interruption; from here on the new state counts.
//  3. The segments of D are removed, and D/cluster.
//  4. The marker is renamed to D/fetch/moving: all segments that are in D from here on are new.
//  5. The segments are moved from D/fetch to D, one by one, and then D/fetch/cluster as a whole to
//     D/cluster.
//  6. The marker is removed, and D/fetch.
// A start continues with the step whose marker it finds: finish_install().
//
// Everything blocks. While one of these functions runs, this process has neither D nor D/cluster
// open (their locks would end), and no StateFetch works in D.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "cluster/types.h"
#include "loop/directory_tree.h"
#include "node/state_fetch.h"

namespace tubed::node {

// Takes the steps. If D/cluster has the state of a node, it must be this node of this cluster, and
// its raft log must not go further than the new state; its term stays if it is the later term,
// and then its vote does. The error is one line; finish_install() then decides which state counts.
// `before_step`: for tests, as in DirectoryTree.
Result<void> install(const std::string& directory, const FetchedState& fetched,
                     cluster::NodeId node, const loop::DirectoryTree::Hook& before_step = {});

// Continues what a crash has interrupted: afterwards D has the old or the new state, whole, and no
// D/fetch. Called before each start of a node, and does nothing if no D/fetch exists.
Result<void> finish_install(const std::string& directory,
                            const loop::DirectoryTree::Hook& before_step = {});

}  // namespace tubed::node
