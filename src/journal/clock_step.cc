// Journal: a wall clock that was stepped.
//
// Deadlines are wall time on disk and monotonic time in memory. An offset ties the two together,
// and every record is encoded with the one offset in force. When the machine's clock is stepped, or
// the machine was suspended, that offset is wrong by the step, and so are the deadlines on disk: a
// restart would let a delay end early or late. Steps:
//
// 1. set_clock() gets the offset as it is now. Up to kTolerance it changes nothing.
// 2. Beyond that it is the offset in force, and every deadline that is older is written again: the
//    place of each job that is or was delayed, and each pause.
// 3. rewrite_deadlines() does that a slice at a time, together with what the turn has emitted. It
//    finds the jobs as compaction does, by the segments that hold their newest `Added`. Whatever is
//    written meanwhile, also by compaction, has the new offset already.
//
// What has ended is written again, too: on disk a delay that is over is only a time that has
// passed, and a clock that was set back would put it into the future again.
//
// A slice waits while there is no room for it. An orderly stop writes all slices first; after a
// crash in between, the deadlines that were not reached are off by the step.
#include "journal/journal.h"

namespace tubed::journal {

namespace {

// Clients give delays and pauses in whole seconds: half of one does no harm.
constexpr std::chrono::milliseconds kTolerance{500};

constexpr std::uint64_t kRewrittenBytes = 64 << 10;
constexpr std::uint64_t kJobsLookedAt = 4'096;

}  // namespace

void Journal::set_clock(const WallClock& clock) {
  if (std::chrono::abs(clock.offset - clock_.offset) <= kTolerance) return;
  clock_ = clock;
  rewriting_ = Rewriting{
      .segment = liveness_.oldest().sequence, .last_segment = head_.segment, .pause_after = {}};
}

// While the disk has not said no, deadlines must not take what is kept back. A stop has to come to
// its end, and nothing grows ahead of it.
bool Journal::rewriting_waits() const {
  return !stopped_ && congested();
}

// One slice. True: nothing was found yet, there is more to look at.
bool Journal::rewrite_deadlines() {
  struct Rewrite final : FactSink {
    explicit Rewrite(Journal& owner) : journal(owner) {}
    void fact(const Fact& fact) override {
      const std::uint64_t bytes = record_bytes(fact);
      journal.client_bytes_ += bytes;  // compaction keeps pace with it
      ++journal.records_written_;
      journal.append(fact, bytes);
    }
    Journal& journal;
  };

  if (!rewriting_ || !has_room_for_bytes(kRewrittenBytes)) return false;
  if (rewriting_waits()) return false;
  Rewrite rewrite(*this);
  const Lsn before = appended_;
  if (rewrite_delays(rewrite) && rewrite_pauses(rewrite)) rewriting_.reset();
  return rewriting_ && appended_ == before;
}

// True: every job was looked at.
bool Journal::rewrite_delays(FactSink& sink) {
  const std::uint64_t full = pending_bytes_ + kRewrittenBytes;
  Rewriting& at = *rewriting_;
  std::uint64_t looks = 0;
  if (const std::uint64_t oldest = liveness_.oldest().sequence; at.segment < oldest) {
    at.segment = oldest;  // compaction has been there meanwhile
    at.run = at.run_offset = 0;
  }
  for (; at.segment <= at.last_segment; ++at.segment, at.run = 0) {
    const auto& runs = liveness_.use_of(at.segment).added;
    for (; at.run < runs.size(); ++at.run, at.run_offset = 0) {
      while (at.run_offset < runs[at.run].count) {
        if (pending_bytes_ >= full || ++looks > kJobsLookedAt || rewriting_waits()) return false;
        const JobId id = runs[at.run].first + at.run_offset++;
        if (liveness_.segment_of(id) == at.segment) host_.describe_delay(id, sink);
      }
    }
  }
  return true;
}

// True: every pause was looked at.
bool Journal::rewrite_pauses(FactSink& sink) {
  const std::uint64_t full = pending_bytes_ + kRewrittenBytes;
  const Time now = host_.now();
  std::string& at = rewriting_->pause_after;
  while (pending_bytes_ < full && !rewriting_waits()) {
    const auto next = liveness_.pauses().upper_bound(at);
    if (next == liveness_.pauses().end()) return true;
    at = next->first;
    const PauseInForce pause = next->second;
    const bool holds = pause.until > now;
    sink.fact(Paused{.tube = at,
                     .duration = holds ? pause.duration : Seconds{},
                     .until = holds ? pause.until : Time()});
  }
  return false;
}

}  // namespace tubed::journal
