// EntryTimes: when the entries were appended that a follower lacks, for its lag.
//
// An entry of facts has the time of the cluster in its header, also if an earlier leader made it.
// This object remembers the times of the leader's other entries, which are few, and the time of the
// oldest entry that a follower lacks when the raft log drops it. An entry costs nothing when it is
// appended.
#pragma once

#include <map>
#include <optional>

#include "base/time.h"
#include "cluster/cluster_clock.h"
#include "cluster/raft_log.h"
#include "cluster/types.h"

namespace tubed::cluster {

class EntryTimes {
 public:
  // Starts again for another term or leader.
  void reset();
  // This leader appends an entry without facts at the monotonic time `now`.
  void appended(Index index, Time now) { others_[index] = now; }
  // The log is about to drop the entries before `first`, and `follower` has those up to `match`.
  void before_cut(const RaftLog& log, const ClusterClock& clock, Index first, NodeId follower,
                  Index match);
  // The log has dropped the entries before `first`.
  void cut(Index first) { others_.erase(others_.begin(), others_.lower_bound(first)); }

  // Returns the monotonic time at which the entry after `match` was appended. Nothing: not known.
  // O(log entries without facts), and O(1) for each entry without a known time that follows.
  std::optional<Time> after(const RaftLog& log, const ClusterClock& clock, NodeId follower,
                            Index match) const;

 private:
  struct Dropped {
    Index index = 0;
    Time time;
  };

  std::map<Index, Time> others_;
  std::map<NodeId, Dropped> dropped_;
};

}  // namespace tubed::cluster
