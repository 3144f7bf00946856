#include "journal/segment_liveness.h"

#include <algorithm>

#include "base/assert.h"
#include "base/overloaded.h"

namespace tubed::journal {

void SegmentLiveness::open_segment(std::uint64_t sequence, std::uint64_t used_bytes) {
  TUBED_ASSERT(segments_.empty() || sequence == segments_.back().sequence + 1);
  TUBED_ASSERT(sequence > 0 && sequence <= UINT32_MAX);
  segments_.push_back({.sequence = sequence, .used_bytes = used_bytes, .added = {}});
  used_bytes_ += used_bytes;
}

void SegmentLiveness::drop_oldest() {
  TUBED_ASSERT(segments_.size() > 1 && segments_.front().live_records == 0);
  const std::uint64_t dropped = segments_.front().used_bytes;
  used_bytes_ -= dropped;
  segments_.pop_front();
  if (dropped < largest_segment_bytes_) return;
  const auto largest = std::ranges::max_element(segments_, {}, &SegmentUse::used_bytes);
  largest_segment_bytes_ = largest->used_bytes;
}

std::uint64_t SegmentLiveness::last_of_the_dead() const {
  const auto live =
      std::find_if(segments_.begin(), segments_.end() - 1,
                   [](const SegmentUse& segment) { return segment.live_records > 0; });
  return (live - 1)->sequence;
}

void SegmentLiveness::use(std::uint64_t bytes) {
  segments_.back().used_bytes += bytes;
  used_bytes_ += bytes;
  largest_segment_bytes_ = std::max(largest_segment_bytes_, segments_.back().used_bytes);
}

SegmentLiveness::Effect SegmentLiveness::apply(const Fact& fact, std::uint64_t bytes) {
  use(bytes);
  return std::visit(Overloaded{[&](const Added& added) { return this->added(added.id, bytes); },
                               [](const Placed&) { return Effect::once; },
                               [](const Moved&) { return Effect::once; },
                               [](const Held&) { return Effect::once; },
                               [&](const Applied& position) {
                                 set_applied(position, bytes);
                                 return Effect::once;
                               },
                               [&](const PolicySet& set) {
                                 policy_set(set, bytes);
                                 return Effect::once;
                               },
                               [&](const Removed& removed) {
                                 this->removed(removed.id);
                                 return Effect::once;
                               },
                               [&](const Paused& paused) {
                                 this->paused(paused, bytes);
                                 return Effect::once;
                               },
                               // A `Removed` of each job follows.
                               [](const Flushed&) { return Effect::once; },
                               [&](const Remembered& remembered) {
                                 this->remembered(remembered.id, bytes);
                                 return Effect::once;
                               }},
                    fact);
}

inline void SegmentLiveness::place(Location& location, JobId id, std::uint64_t bytes, bool is_job) {
  SegmentUse& newest = segments_.back();
  location.segment = static_cast<std::uint32_t>(newest.sequence);
  location.bytes = static_cast<std::uint32_t>(bytes) & INT32_MAX;
  location.is_job = is_job ? 1 : 0;
  add_live(newest.sequence, bytes);
  auto& runs = newest.added;
  if (!runs.empty() && runs.back().first + runs.back().count == id) {
    ++runs.back().count;
  } else {
    runs.push_back({id, 1});
  }
}

SegmentLiveness::Effect SegmentLiveness::added(JobId id, std::uint64_t bytes) {
  Page& page = pages_[id / kPageIds];
  Location& location = page.locations[id % kPageIds];
  const bool is_new = location.segment == 0;
  if (is_new) {
    ++page.count;
    ++jobs_;
  } else {
    subtract_live(location.segment, location.bytes);
  }
  place(location, id, bytes, true);
  return is_new ? Effect::once : Effect::again;
}

// A cooldown follows the `Removed` of its job. If a salvage has lost that, the job exists again.
void SegmentLiveness::remembered(JobId id, std::uint64_t bytes) {
  Page& page = pages_[id / kPageIds];
  Location& location = page.locations[id % kPageIds];
  if (location.segment == 0) {
    ++page.count;
  } else if (location.is_job != 0) {
    return;
  } else {
    subtract_live(location.segment, location.bytes);
  }
  place(location, id, bytes, false);
}

void SegmentLiveness::removed(JobId id) {
  const auto found = pages_.find(id / kPageIds);
  if (found == pages_.end()) return;
  Location& location = found->second.locations[id % kPageIds];
  if (location.segment == 0) return;
  subtract_live(location.segment, location.bytes);
  if (location.is_job != 0) --jobs_;
  location = {};
  if (--found->second.count == 0) pages_.erase(found);
}

void SegmentLiveness::paused(const Paused& pause, std::uint64_t bytes) {
  end_pause(pause.tube);
  if (pause.duration.count == 0) return;
  const std::uint64_t segment = segments_.back().sequence;
  pauses_.try_emplace(std::string(pause.tube),
                      PauseInForce{pause.duration, pause.until, segment, bytes});
  add_live(segment, bytes);
}

void SegmentLiveness::end_pause(std::string_view tube) {
  const auto found = pauses_.find(tube);
  if (found == pauses_.end()) return;
  subtract_live(found->second.segment, found->second.bytes);
  pauses_.erase(found);
}

void SegmentLiveness::policy_set(const PolicySet& set, std::uint64_t bytes) {
  const PolicyName name{set.tube, set.key};
  if (const auto found = policies_.find(name); found != policies_.end()) {
    subtract_live(found->second.segment, found->second.bytes);
    policies_.erase(found);
  }
  if (set.value == kNoPolicyValue) return;
  const std::uint64_t segment = segments_.back().sequence;
  policies_.try_emplace(name, PolicyInForce{std::string(set.value), segment, bytes});
  add_live(segment, bytes);
}

void SegmentLiveness::set_applied(const Applied& position, std::uint64_t bytes) {
  if (applied_) subtract_live(applied_->segment, applied_->bytes);
  applied_ = AppliedInForce{position, segments_.back().sequence, bytes};
  add_live(applied_->segment, bytes);
}

std::uint64_t SegmentLiveness::segment_of(JobId id) const {
  const auto found = pages_.find(id / kPageIds);
  return found == pages_.end() ? 0 : found->second.locations[id % kPageIds].segment;
}

SegmentUse& SegmentLiveness::segment(std::uint64_t sequence) {
  const std::uint64_t index = sequence - segments_.front().sequence;
  TUBED_ASSERT(index < segments_.size());
  return segments_[index];
}

void SegmentLiveness::add_live(std::uint64_t sequence, std::uint64_t bytes) {
  SegmentUse& use = segment(sequence);
  use.live_bytes += bytes;
  ++use.live_records;
  live_bytes_ += bytes;
  largest_bytes_ = std::max(largest_bytes_, bytes);
}

void SegmentLiveness::subtract_live(std::uint64_t sequence, std::uint64_t bytes) {
  SegmentUse& use = segment(sequence);
  use.live_bytes -= bytes;
  --use.live_records;
  live_bytes_ -= bytes;
}

}  // namespace tubed::journal
