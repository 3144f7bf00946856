#include "journal/deadline_rewriter.h"

namespace tubed::journal {

namespace {

constexpr std::uint64_t kBytesPerSlice = 64 << 10;
constexpr std::uint64_t kJobsSeenPerSlice = 4'096;

}  // namespace

// The sink and the budget of one slice.
class DeadlineRewriter::Slice final : public FactSink {
 public:
  Slice(Context& context, Appender& appender, const std::function<bool()>& congested)
      : context_(context),
        appender_(appender),
        congested_(congested),
        end_(appender.pending_bytes() + kBytesPerSlice) {}

  void fact(const Fact& fact) override {
    // Its `Held`, which may follow, must be in the same batch.
    if (context_.options.reservations) appender_.make_room(record_bytes(fact) + kHeldBytes);
    appender_.append(fact);
    wrote_ = true;
  }

  // A closing journal must reach its end, and does not grow ahead of need.
  bool waits() const { return !context_.closing && congested_(); }
  bool may_write() const { return appender_.pending_bytes() < end_ && !waits(); }
  bool wrote() const { return wrote_; }

 private:
  Context& context_;
  Appender& appender_;
  const std::function<bool()>& congested_;
  std::uint64_t end_;
  bool wrote_ = false;
};

void DeadlineRewriter::restart() {
  progress_ = Progress{.segment = liveness_.oldest().sequence,
                       .jobs = {},
                       .last_segment = liveness_.newest().sequence,
                       .last_pause = {}};
}

bool DeadlineRewriter::run_slice(const std::function<bool()>& congested) {
  if (!space_.has_room_for(kBytesPerSlice)) return false;
  Slice slice(context_, appender_, congested);
  if (slice.waits()) return false;
  if (rewrite_delays(slice) && rewrite_pauses(slice)) progress_.reset();
  return progress_ && !slice.wrote();
}

bool DeadlineRewriter::rewrite_delays(Slice& slice) {
  Progress& at = *progress_;
  if (const std::uint64_t oldest = liveness_.oldest().sequence; at.segment < oldest) {
    at.segment = oldest;  // compaction has copied the others
    at.jobs = {};
  }
  std::uint64_t seen = 0;
  for (; at.segment <= at.last_segment; ++at.segment, at.jobs = {}) {
    for (;;) {
      if (!slice.may_write() || seen++ == kJobsSeenPerSlice) return false;
      const auto job = at.jobs.next(liveness_.use_of(at.segment).added);
      if (!job) break;
      if (liveness_.segment_of(*job) == at.segment) context_.host.describe_delay(*job, slice);
    }
  }
  return true;
}

bool DeadlineRewriter::rewrite_pauses(Slice& slice) {
  const Time now = context_.host.now();
  std::string& at = progress_->last_pause;
  while (slice.may_write()) {
    const auto next = liveness_.pauses().upper_bound(at);
    if (next == liveness_.pauses().end()) return true;
    at = next->first;
    const PauseInForce pause = next->second;
    const bool holds = pause.until > now;
    slice.fact(Paused{.tube = at,
                      .duration = holds ? pause.duration : Seconds{},
                      .until = holds ? pause.until : Time()});
  }
  return false;
}

}  // namespace tubed::journal
