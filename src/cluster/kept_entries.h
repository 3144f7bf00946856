// KeptEntries: which entries that the journal has on disk a node still keeps in its Raft log.
//
// These are the newest of them, at most kept_entries and kept_bytes, but at least one; and as long
// as the log does not exceed its bound, those that a follower lacks, or a node that fetches the
// state.
#pragma once

#include "cluster/node_host.h"
#include "cluster/raft_log.h"
#include "cluster/types.h"

namespace tubed::cluster {

class KeptEntries {
 public:
  // Both outlive this object.
  KeptEntries(const NodeOptions& options, const RaftLog& log) : options_(options), log_(log) {}

  // Returns the first of the newest entries up to `position` that are kept. O(log of their number).
  Index newest(Index position) const;
  // Returns the first entry that is kept when the journal has everything up to `position` and the
  // followers everything up to `acknowledged`.
  Index first(Index position, Index acknowledged) const;

  // Entries were cut for this position of the journal.
  void cut_at(Index position) { cut_ = position; }
  // True if the journal has got so far since then that cutting is worth it.
  bool is_worth_cutting(Index position) const;

  // Another node fetches the state: entries from `first` are not cut unless the Raft log exceeds
  // its bound. Replaces an earlier pin().
  void pin(Index first) { pinned_ = first; }
  void unpin() { pinned_ = kMostIndex; }

 private:
  const NodeOptions& options_;
  const RaftLog& log_;
  Index cut_ = 0;
  Index pinned_ = kMostIndex;
};

}  // namespace tubed::cluster
