// Installation: makes the state in D/fetch (state_fetch.h) the state of the node with the directory
// D.
//
// The steps, each durable before the next:
//  1. The state of the node is stored in D/fetch/cluster.
//  2. The marker D/fetch/complete is stored. Before this step the old state counts, and D/fetch is
//     dropped after an interruption; afterwards the new state counts.
//  3. The segments of D and D/cluster are removed.
//  4. The marker is renamed to D/fetch/moving: all segments that are in D afterwards are new.
//  5. The segments are moved from D/fetch to D, one by one, then D/fetch/cluster as a whole to
//     D/cluster.
//  6. The marker and D/fetch are removed.
// A start continues with the step whose marker it finds: finish_install().
//
// All functions block. While one of them runs, this process must not have D or D/cluster open
// (their locks would end), and no StateFetch may work in D.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "cluster/types.h"
#include "disk/directory_tree.h"
#include "node/state_fetch.h"

namespace tubed::node {

// Takes the steps. If D/cluster has the state of a node, it must be this node of this cluster, and
// its raft log must not extend beyond the new state. Its term and vote are kept if its term is not
// lower. The error is one line; finish_install() then decides which state counts. `before_step` is
// for tests, as in DirectoryTree.
Result<void> install(const std::string& directory, const FetchedState& fetched,
                     cluster::NodeId node, const disk::DirectoryTree::Hook& before_step = {});

// Continues an installation that a crash has interrupted: afterwards D has the whole old or new
// state and no D/fetch. Called before each start of a node. Does nothing if D/fetch does not exist.
Result<void> finish_install(const std::string& directory,
                            const disk::DirectoryTree::Hook& before_step = {});

}  // namespace tubed::node
