#include "journal/compactor.h"

#include <algorithm>

#include "base/assert.h"

namespace tubed::journal {

namespace {

// A slice has kPace bytes per byte written by clients since the last slice, at least
// kMinSliceBytes, or kIdleSliceBytes if clients have written nothing.
constexpr std::uint64_t kMinSliceBytes = 64 << 10;
constexpr std::uint64_t kIdleSliceBytes = 256 << 10;
constexpr std::uint64_t kMaxSliceBytes = 4 << 20;
constexpr std::uint64_t kPace = 4;
constexpr std::uint64_t kPaceWhenFull = 64;
constexpr std::uint64_t kJobsPerSlice = 16'384;
constexpr std::uint64_t kPausesPerSlice = 1'024;
constexpr std::uint64_t kPoliciesPerSlice = 1'024;

// The sink of one slice.
class CopySink final : public FactSink {
 public:
  explicit CopySink(Appender& appender) : appender_(appender) {}
  void fact(const Fact& fact) override { bytes_ += appender_.append_copy(fact); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  Appender& appender_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

bool Compactor::is_worthwhile() const {
  const std::uint64_t used = liveness_.used_bytes();
  const std::uint64_t live = liveness_.live_bytes();
  if (space_.full()) {
    return used > live + space_.idle_waste() &&
           (space_.at_own_bound() || space_.free_bytes() >= space_.bytes_to_free_oldest());
  }
  return used > live + live / 2 + context_.options.segment_bytes / 2;
}

bool Compactor::comes_first() const {
  const std::uint64_t needed = space_.bytes_to_free_oldest() + context_.options.segment_bytes / 8;
  return wanted() && space_.free_bytes() < needed;
}

std::uint64_t Compactor::slice_bytes() {
  const std::uint64_t written = appender_.take_fact_bytes();
  if (written == 0) return kIdleSliceBytes;
  const std::uint64_t pace = space_.full() ? kPaceWhenFull : kPace;
  return std::min(kMinSliceBytes + written * pace, kMaxSliceBytes);
}

bool Compactor::run_slice() {
  const std::uint64_t budget = slice_bytes();
  const SegmentUse& oldest = liveness_.oldest();
  if (segment_ != oldest.sequence) {
    segment_ = oldest.sequence;
    jobs_ = {};
    last_pause_.clear();
    last_policy_ = {};
  }
  CopySink sink(appender_);
  for (std::uint64_t seen = 0; oldest.live_records > 0; ++seen) {
    if (seen == kJobsPerSlice) return true;
    if (sink.bytes() >= budget) return false;
    const AddedCursor here = jobs_;
    const auto job = jobs_.next(oldest.added);
    if (!job) return copy_pauses();
    if (liveness_.segment_of(*job) != segment_) continue;
    if (!context_.host.describe_job(*job, sink)) {
      jobs_ = here;
      return false;
    }
  }
  return false;
}

// Returns true if more pauses or policies remain to be examined.
bool Compactor::copy_pauses() {
  const Time now = context_.host.settled_time();
  for (std::uint64_t seen = 0; seen < kPausesPerSlice; ++seen) {
    const auto next = liveness_.pauses().upper_bound(last_pause_);
    if (next == liveness_.pauses().end()) return copy_policies();
    last_pause_ = next->first;
    const PauseInForce pause = next->second;
    if (pause.segment != segment_) continue;
    if (pause.until <= now) {
      liveness_.end_pause(last_pause_);
    } else {
      appender_.append_copy(
          Paused{.tube = last_pause_, .duration = pause.duration, .until = pause.until});
    }
  }
  return true;
}

// The same for policies.
bool Compactor::copy_policies() {
  for (std::uint64_t seen = 0; seen < kPoliciesPerSlice; ++seen) {
    const auto next = liveness_.policies().upper_bound(last_policy_);
    if (next == liveness_.policies().end()) {
      copy_applied();
      TUBED_ASSERT(liveness_.oldest().live_records == 0);
      return false;
    }
    last_policy_ = next->first;
    const PolicyInForce policy = next->second;
    if (policy.segment != segment_) continue;
    const auto& [tube, key] = last_policy_;
    appender_.append_copy(PolicySet{.tube = tube, .key = key, .value = policy.value});
  }
  return true;
}

void Compactor::copy_applied() {
  const auto& applied = liveness_.applied();
  if (applied && applied->segment == segment_) appender_.append_copy(Applied(applied->position));
}

}  // namespace tubed::journal
