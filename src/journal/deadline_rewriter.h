// DeadlineRewriter: writes all deadlines again after the wall clock was stepped.
//
// Deadlines are wall time on disk and monotonic time in memory. An offset ties the two together,
// and every record is encoded with the one offset in force (Context::clock). When the machine's
// clock is stepped, or the machine was suspended, that offset is wrong by the step, and so are the
// deadlines on disk: a restart would let a delay end early or late. Steps:
//
//  1. Journal::set_clock() gets the offset as it is now. A small difference changes nothing.
//  2. Otherwise it becomes the offset in force, and every older deadline has to be written again:
//     the place of each job that is or was delayed, and each pause.
//  3. run_slice() does so a slice at a time, in the commits of the following ticks. It finds the
//     jobs as compaction does, by the segments of their live records. Records that are written in
//     the meantime, also by compaction, have the new offset already.
//
// A deadline that has passed is written again, too: on disk it is only a time in the past, and a
// clock that was set back would put it into the future again.
//
// A slice waits for room. An orderly stop writes all slices first. After a
// crash in between, the deadlines that were not reached are off by the step.
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

  // Step 2: begins with the oldest segment, also if it was in the middle of the log.
  void restart();

  // Something is left to be written.
  bool active() const { return progress_.has_value(); }
  // Writes one slice, unless it lacks room. Precondition: active(). It ends early when `congested`
  // returns true, so that it does not use the reserve before the disk has refused to grow; while
  // the journal is closing, it does not ask. True: nothing was written, and there is more to look
  // at.
  bool run_slice(const std::function<bool()>& congested);

 private:
  struct Progress {
    std::uint64_t segment = 0;  // whose jobs are looked at
    AddedCursor jobs;
    std::uint64_t last_segment = 0;  // later segments have the offset in force
    std::string last_pause;
  };
  class Slice;

  // True: every job, or pause, was looked at.
  bool rewrite_delays(Slice& slice);
  bool rewrite_pauses(Slice& slice);

  Context& context_;
  const SegmentLiveness& liveness_;
  const Space& space_;
  Appender& appender_;
  std::optional<Progress> progress_;  // nothing: all deadlines are right
};

}  // namespace tubed::journal
