// Compactor: copies what is live in the oldest segment to the head of the log, so that the segment
// can be removed (SegmentRemover). Records that are dead stay where they are and go with it.
//
// It works in slices. A slice runs at the end of a tick, before the commit begins, and its copies
// are part of that commit. Its size follows what clients have written since the last slice: four
// bytes are copied for each byte written, so that all files together stay near twice the live
// bytes and two segments, and Space holds commands back where they do not. A job that the host
// cannot describe yet ends the slice, and is the first of the next.
//
// Invariant: what the cursor has passed is not live in the oldest segment.
#pragma once

#include <cstdint>
#include <string>

#include "journal/appender.h"
#include "journal/context.h"
#include "journal/segment_liveness.h"
#include "journal/space.h"

namespace tubed::journal {

class Compactor {
 public:
  Compactor(Context& context, SegmentLiveness& liveness, const Space& space, Appender& appender)
      : context_(context), liveness_(liveness), space_(space), appender_(appender) {}

  // Whether enough of the log is dead to make copying worthwhile.
  bool wanted() const {
    const SegmentUse& oldest = liveness_.oldest();
    const bool is_head = oldest.sequence == liveness_.newest().sequence;
    return !is_head && oldest.live_records > 0 && is_worthwhile();
  }
  // On a full disk: whether clients have to wait, because they could use up what it takes to free
  // the oldest segment.
  bool comes_first() const;
  // One slice. True: nothing was found to copy yet, and there is more to look at.
  bool run_slice();

 private:
  bool is_worthwhile() const;
  std::uint64_t slice_bytes();
  bool copy_pauses();
  bool copy_policies();
  void copy_applied();

  Context& context_;
  SegmentLiveness& liveness_;
  const Space& space_;
  Appender& appender_;

  // How far the oldest segment was walked through.
  std::uint64_t segment_ = 0;
  AddedCursor jobs_;
  std::string last_pause_;
  PolicyName last_policy_;
};

}  // namespace tubed::journal
