// Syncer: which of the written facts are on disk, and the syncs that are not part of a write.
//
// With `always` each write of the Committer syncs, and nothing remains to be done. With an interval
// the first commit after a sync arms a deadline, at which the segment written last is synced. With
// `never`, and before a dead segment is removed, a sync is requested.
//
// Invariant: every fact before synced() is on disk. A segment is synced only when all older
// segments are closed and therefore on disk.
#pragma once

#include <algorithm>
#include <cstdint>

#include "journal/context.h"
#include "journal/preallocator.h"
#include "journal/segment_closer.h"

namespace tubed::journal {

class Syncer {
 public:
  // All facts before `begin` are on disk.
  Syncer(Context& context, const Preallocator& preallocator, const SegmentCloser& closer, Lsn begin)
      : context_(context),
        preallocator_(preallocator),
        closer_(closer),
        written_(begin),
        synced_(begin) {}

  // The kernel has all facts before this position.
  Lsn written() const { return written_; }
  // All facts before this position are on disk.
  Lsn synced() const { return std::max(synced_, closer_.synced()); }

  // A write to this segment has ended; the log is written up to `end`. `synced`: the write was
  // synced.
  void note_written(std::uint64_t segment, Lsn end, bool synced);
  // A commit has ended: arms the deadline if the interval begins with it.
  void note_commit(Time now);
  // The mode has changed: earlier facts are synced as the new mode requires.
  void apply_options(bool becomes_always);

  // Requests a sync of everything written.
  void request() { wanted_ = true; }
  // Called at the end of a tick. Begins a sync if one was requested or its deadline has passed, and
  // it is possible.
  void flush(Time now);
  // Returns when a sync must begin; kNever: no deadline is armed.
  Time deadline() const { return deadline_; }
  bool running() const { return running_; }

 private:
  Context& context_;
  const Preallocator& preallocator_;
  const SegmentCloser& closer_;

  Lsn written_;
  Lsn synced_;
  std::uint64_t last_segment_ = 0;  // the segment written last
  bool wanted_ = false;
  bool running_ = false;
  Time deadline_ = kNever;
};

}  // namespace tubed::journal
