// Configurations: the members of the cluster, as the entries of a node's Raft log have set them.
//
// The newest configuration is in force as soon as its entry is in the log, although it may not be
// committed and another leader may undo it. The configuration before the first entry of the log is
// in the state of the node.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "cluster/followers.h"
#include "cluster/member.h"
#include "cluster/node_state.h"
#include "cluster/raft_core.h"
#include "cluster/raft_log.h"
#include "cluster/types.h"

namespace tubed::cluster {

class Configurations {
 public:
  // All of them outlive this object.
  Configurations(NodeState& state, const RaftLog& log, const RaftCore& core)
      : state_(state), log_(log), core_(core) {}

  // The newest configuration has changed.
  void follow();
  // The entries before `first` are going to be cut: keeps the configuration in force there in the
  // state of the node. Returns true if that has changed the state. O(entries before `first`).
  bool keep_before(Index first);

  // Returns the encoded configuration in force at this entry, and the entry that set it. The text
  // is valid until the next event. O(entries before it).
  std::pair<std::string_view, Index> at(Index index) const;
  // Returns the entry that set the newest configuration.
  Index newest() const { return newest_; }
  // Returns the voters of the newest configuration.
  const std::vector<NodeId>& voters() const { return voters_; }
  // On a leader: true if a majority of the voters among `members` know that they are voters, and
  // each new voter has answered since `recent` and has all entries up to `committed`. Otherwise the
  // change might be committed and leave the cluster without a leader for good: libraft's core does
  // not vote if the node is not a voter in its own configuration. With a new voter, only the others
  // that have answered since `recent` count, because the leader may fail before the new one has the
  // change; but the second voter of a cluster counts. O(members).
  bool would_elect(const std::vector<Member>& members, Index committed, const Followers& followers,
                   Time recent) const;

 private:
  NodeState& state_;
  const RaftLog& log_;
  const RaftCore& core_;
  std::vector<NodeId> voters_;
  Index newest_ = 0;
};

}  // namespace tubed::cluster
