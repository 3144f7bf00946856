// DeadlineRewriter: rewrites all deadlines after the wall clock was stepped.
//
// Deadlines are wall time on disk and monotonic time in memory. Every record is encoded with the
// current offset between the two (Context::clock). When the machine's clock is stepped, or the
// machine was suspended, that offset is wrong by the step, and so are the deadlines on disk: after
// a restart, a delay would end early or late. Steps:
//
//  1. Journal::set_clock() gets the new offset. A small difference is ignored.
//  2. Otherwise it becomes the current offset, and every older deadline has to be rewritten: the
//     place of each job that is or was delayed, and each pause.
//  3. run_slice() does so one slice at a time, in the commits of the following ticks. It finds the
//     jobs as compaction does, by the segments of their live records. Records written meanwhile, by
//     compaction too, already have the new offset.
//
// A deadline that has passed is rewritten as well: on disk it is only a time, which would be in the
// future again if the clock was set back.
//
// A slice waits for room. An orderly stop writes all slices first. After a crash, deadlines that
// were not yet rewritten are off by the step.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "journal/appender.h"
#include "journal/context.h"
#include "journal/segment_liveness.h"
#include "journal/space.h"

namespace tubed::journal {

class DeadlineRewriter {
 public:
  DeadlineRewriter(Context& context, const SegmentLiveness& liveness, const Space& space,
                   Appender& appender)
      : context_(context), liveness_(liveness), space_(space), appender_(appender) {}

  // Step 2: starts with the oldest segment, even if a rewrite is in progress.
  void restart();

  // True while deadlines remain to be rewritten.
  bool active() const { return progress_.has_value(); }
  // Writes one slice, unless it lacks room. Ends early when `congested` returns true: it must not
  // use the reserve before the disk has refused to grow. A closing journal does not ask. Returns
  // true if nothing was written and more is to be examined. Precondition: active().
  bool run_slice(const std::function<bool()>& congested);

 private:
  struct Progress {
    std::uint64_t segment = 0;  // whose jobs are examined
    AddedCursor jobs;
    std::uint64_t last_segment = 0;  // later segments have the current offset
    std::string last_pause;
  };
  class Slice;

  // Returns true when every job, or pause, has been examined.
  bool rewrite_delays(Slice& slice);
  bool rewrite_pauses(Slice& slice);

  Context& context_;
  const SegmentLiveness& liveness_;
  const Space& space_;
  Appender& appender_;
  std::optional<Progress> progress_;  // nothing: all deadlines are correct
};

}  // namespace tubed::journal
