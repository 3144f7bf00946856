// Syncer: which of the written facts the disk has, and the syncs that are not part of a write.
//
// With `always` each write of the Committer syncs, and nothing is left to do. With an interval the
// first commit after a sync arms a deadline; at the deadline the segment that was written last is
// synced. With `never`, and before a dead segment is removed, a sync is requested.
//
// Invariant: every fact before synced() is on the disk. A segment is only synced when all older
// segments are closed, and so on the disk.
#pragma once

#include <algorithm>
#include <cstdint>

#include "journal/context.h"
#include "journal/preallocator.h"
#include "journal/segment_closer.h"

namespace tubed::journal {

class Syncer {
 public:
  // The disk has every fact before `begin`.
  Syncer(Context& context, const Preallocator& preallocator, const SegmentCloser& closer, Lsn begin)
      : context_(context),
        preallocator_(preallocator),
        closer_(closer),
        written_(begin),
        synced_(begin) {}

  // The kernel has every fact before this position.
  Lsn written() const { return written_; }
  // The disk has every fact before this position.
  Lsn synced() const { return std::max(synced_, closer_.synced()); }

  // A write to this segment has ended; the log is written up to `end`. `synced`: the write was.
  void note_written(std::uint64_t segment, Lsn end, bool synced);
  // A commit has ended: arms the deadline if the interval is to begin with it.
  void note_commit(Time now);
  // The mode has changed: facts that were written before are synced as the new mode asks.
  void apply_options(bool becomes_always);

  // Asks for a sync of all that is written.
  void request() { wanted_ = true; }
  // At the end of a tick: begins a sync if one is wanted or due, and possible.
  void flush(Time now);
  // When a sync is due; kNever: no deadline is armed.
  Time deadline() const { return deadline_; }
  bool running() const { return running_; }

 private:
  Context& context_;
  const Preallocator& preallocator_;
  const SegmentCloser& closer_;

  Lsn written_;
  Lsn synced_;
  std::uint64_t last_segment_ = 0;  // that was written
  bool wanted_ = false;
  bool running_ = false;
  Time deadline_ = kNever;
};

}  // namespace tubed::journal
