// NodeState: what a node must remember about itself: its cluster, its number, its term and vote,
// and the members of the cluster.
//
// The state is one small file. Each store creates a new file under the next number, durable and
// complete or absent, and then removes the old file. The newest file is therefore never torn: if it
// cannot be decoded, it is damaged. An older vote is not used in its place, because the node may
// have voted since. docs/internals/raft-log-format.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/levels.h"
#include "cluster/types.h"
#include "journal/storage.h"

namespace tubed::cluster {

struct NodeState {
  std::uint64_t cluster = 0;  // the cluster's identity
  NodeId node = 0;
  Term term = 0;
  NodeId voted_for = 0;       // in `term`; 0: no node
  std::string configuration;  // the members, in the Raft library's encoding; empty: none
  Index configuration_index = 0;
  Level level = kFirstLevel;  // in use in the cluster, as far as the node knows

  friend bool operator==(const NodeState&, const NodeState&) = default;
};

// Returns the last stored state, and makes it durable, because a killed process may not have.
// Nothing: no state was stored. The error names the file; damage has the kind `damaged`. Blocking.
Result<std::optional<NodeState>> load_node_state(journal::Storage& storage);

// The same without changes, for a directory that another process may be using.
Result<std::optional<NodeState>> read_node_state(journal::FileReader& storage);

// Replaces the state, durably; after a crash or an error it is the old or the new state. Keeps a
// spare file, which it gives up when the disk is full; if the disk still has no room, the error has
// the kind `no_space`. Blocking.
Result<void> store_node_state(journal::Storage& storage, const NodeState& state);

}  // namespace tubed::cluster
