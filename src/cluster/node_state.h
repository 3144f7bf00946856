// NodeState: the facts that a node must remember of itself: its cluster, its number, its term and
// vote, and the members of the cluster.
//
// The state is one small file. Each store() makes a new file, under the next number, which is
// durable whole or not at all, and then removes the older file. So the newest file is never torn:
// if it cannot be decoded it is damaged, and an older vote is not used instead, because the node
// may have voted since. docs/raft-log-format.md
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/types.h"
#include "journal/storage.h"

namespace tubed::cluster {

struct NodeState {
  std::uint64_t cluster = 0;  // the cluster's identity
  NodeId node = 0;
  Term term = 0;
  NodeId voted_for = 0;       // in `term`; 0: for no node
  std::string configuration;  // the members, as the Raft library encodes them; empty: none
  Index configuration_index = 0;

  friend bool operator==(const NodeState&, const NodeState&) = default;
};

// The state that was stored last, and makes it durable: a process that was killed may have left it
// otherwise. Nothing: none was stored. The error names the file; damage has the kind `damaged`.
// Blocking.
Result<std::optional<NodeState>> load_node_state(journal::Storage& storage);

// The same, but changes nothing: for a directory that another process may use.
Result<std::optional<NodeState>> read_node_state(journal::FileReader& storage);

// Replaces the state. When it returns, the state is durable; after a crash it is the old or the new
// state. After an error it may be either. Keeps a spare file, which it gives up on a full disk:
// if the disk has no room in spite of that, the error has the kind `no_space`. Blocking.
Result<void> store_node_state(journal::Storage& storage, const NodeState& state);

}  // namespace tubed::cluster
