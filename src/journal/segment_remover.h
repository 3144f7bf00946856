// SegmentRemover: removes the oldest segment when it is dead, that is, has no live record. After a
// crash at any moment, either the segment exists or everything that replaces it. Steps:
//
//  1. The file of the segment is closed, and the segment is not the head of the log.
//  2. The position of the log is noted at which the segment, and following segments, were found
//     dead: the records that made them dead, such as copies and `Removed`, precede it. Steps 3 and
//     4 are taken once for all these segments.
//  3. Those records must be on disk: Syncer::synced() has reached the position, after a requested
//     sync if the mode needs one.
//  4. A later batch must say so in its header: Committer::confirmed() has reached the position.
//     Otherwise damage to these records could be mistaken for a torn tail. If no commit is about to
//     write such a batch, a batch without facts is written.
//  5. The file is removed. While the journal is full, it is reused as the next segment instead, so
//     no other process can take its space; a file that is too short for that is removed.
//
// One segment is removed at a time.
#pragma once

#include <optional>

#include "facts/fact_log.h"
#include "journal/appender.h"
#include "journal/closed_files.h"
#include "journal/committer.h"
#include "journal/context.h"
#include "journal/preallocator.h"
#include "journal/segment_closer.h"
#include "journal/segment_liveness.h"
#include "journal/space.h"
#include "journal/syncer.h"

namespace tubed::journal {

class SegmentRemover {
 public:
  SegmentRemover(Context& context, SegmentLiveness& liveness, Preallocator& preallocator,
                 ClosedFiles& closed, Space& space, SegmentCloser& closer, Syncer& syncer,
                 Appender& appender, Committer& committer)
      : context_(context),
        liveness_(liveness),
        preallocator_(preallocator),
        closed_(closed),
        space_(space),
        closer_(closer),
        syncer_(syncer),
        appender_(appender),
        committer_(committer) {}

  // Called at the end of a tick. Takes the next step if the oldest segment is dead.
  void go_on();

  // True if a dead segment is about to be removed and the disk has not refused that.
  bool frees_space_soon() const { return dead_since_.has_value() && !space_.removal_refused(); }
  // True if the oldest segment is dead: it will be closed and removed, unless the disk has refused
  // that.
  bool has_dead() const {
    const SegmentUse& oldest = liveness_.oldest();
    return oldest.live_records == 0 && oldest.sequence != liveness_.newest().sequence &&
           !space_.removal_refused();
  }
  // True while a file is being removed or reused.
  bool running() const { return running_; }

 private:
  bool is_confirmed(Lsn position);
  void reuse();
  void remove();
  void dropped();

  Context& context_;
  SegmentLiveness& liveness_;
  Preallocator& preallocator_;
  ClosedFiles& closed_;
  Space& space_;
  SegmentCloser& closer_;
  Syncer& syncer_;
  Appender& appender_;
  Committer& committer_;

  std::optional<Lsn> dead_since_;  // step 2
  std::uint64_t dead_up_to_ = 0;   // last segment that was dead then
  bool running_ = false;
};

}  // namespace tubed::journal
