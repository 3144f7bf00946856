// Compactor: copies the live records of the oldest segment to the head of the log. The segment can
// then be removed (SegmentRemover). Dead records are removed with it.
//
// It works in slices. A slice runs at the end of a tick, before the commit begins, and its copies
// are part of that commit. Its size follows what clients have written since the last slice: four
// bytes are copied per byte written. That keeps all files together near twice the live bytes plus
// two segments; where it does not, Space holds commands back. A job that the host cannot describe
// yet ends the slice, and is the first of the next.
//
// Invariant: nothing that the cursor has passed is live in the oldest segment.
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

  // True if enough of the log is dead to make copying worthwhile.
  bool wanted() const {
    const SegmentUse& oldest = liveness_.oldest();
    const bool is_head = oldest.sequence == liveness_.newest().sequence;
    return !is_head && oldest.live_records > 0 && is_worthwhile();
  }
  // For a full disk: true if clients have to wait, because they could use up the space needed to
  // free the oldest segment.
  bool comes_first() const;
  // Runs one slice. Returns true if it has not found anything to copy yet, and more is to be
  // examined.
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

  // How far the oldest segment has been examined.
  std::uint64_t segment_ = 0;
  AddedCursor jobs_;
  std::string last_pause_;
  PolicyName last_policy_;
};

}  // namespace tubed::journal
