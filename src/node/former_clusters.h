// The two sides of a recovery from the loss of a majority (--cluster-recover) after it.
//
// The directory of the recovered node has a file with the identities of the clusters from which it
// was recovered. The node answers a node of such a cluster that it is superseded. That node marks
// its directory, ends, and does not start on it again: otherwise a majority of the former
// cluster could serve at the same time as the new cluster. docs/internals/cluster-protocol.md
//
// Errors are one line with the file. Blocking.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tubed::node {

// Returns the identities, the oldest first. A file that cannot be read as such is damaged.
Result<std::vector<std::uint64_t>> read_former_clusters(const std::string& directory);
// Adds the identity durably, and drops the oldest beyond 16.
Result<void> add_former_cluster(const std::string& directory, std::uint64_t cluster);
// Forgets them all: the directory no longer belongs to a cluster.
Result<void> forget_former_clusters(const std::string& directory);

// Marks the directory of a node whose cluster was recovered elsewhere. The mark is lost with the
// state of the node: --cluster-leave and --cluster-recover are possible.
Result<void> mark_superseded(const std::string& directory);
// Fails if the directory is marked.
Result<void> refuse_superseded(const std::string& directory);

}  // namespace tubed::node
