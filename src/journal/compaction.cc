// Journal: the space it takes. Growth ahead of need, what is kept back for what has to go on when
// the disk is full, and compaction.
//
// A segment that is dead is removed. On a full disk its file becomes the next segment instead, so
// that the log goes on in the space that it has, whatever other processes take.
//
// Compaction frees the oldest segment by writing what is alive in it once more, at the head of the
// log. With used <= 3/2 live + 1/2 segment as its aim, and four bytes moved for each byte that
// clients write, all files together stay within twice the live bytes and two segments.
#include <algorithm>

#include "base/assert.h"
#include "journal/journal.h"

namespace tubed::journal {

namespace {

constexpr std::uint64_t kBlockBytes = 4096;
constexpr std::chrono::seconds kRetry{1};

// A slice of compaction: so much, and so much more for each byte that clients wrote meanwhile.
constexpr std::uint64_t kSliceBytes = 64 << 10;
constexpr std::uint64_t kIdleSliceBytes = 256 << 10;
constexpr std::uint64_t kMaxSliceBytes = 4 << 20;
constexpr std::uint64_t kPace = 4;
constexpr std::uint64_t kPaceWhenFull = 64;
constexpr std::uint64_t kLooksPerSlice = 16'384;
constexpr std::uint64_t kPausesPerSlice = 1'024;

// A part of all that is alive is kept back, and at most such a part for a walk through all of it.
constexpr std::uint64_t kLiveShare = 64;
constexpr std::uint64_t kLongestWalk = 8;

}  // namespace

std::uint64_t Journal::chunk_bytes() const {
  const std::uint64_t eighth = options_.segment_bytes / 8;
  return std::max(eighth + kBlockBytes - 1 - (eighth + kBlockBytes - 1) % kBlockBytes, kBlockBytes);
}

// What may lie in a log of live records alone: each segment has a header, and the batches of a
// slice that began in it, of one that ended in it, and of what says that an older segment may go.
// Only what is beyond is worth copying for on a full disk; else it would be copied for ever.
std::uint64_t Journal::idle_waste() const {
  const std::uint64_t segments = head_.segment - liveness_.oldest().sequence + 1;
  return liveness_.live_bytes() / kLiveShare +
         segments * (kSegmentHeaderBytes + 4 * kBatchHeaderBytes) + options_.segment_bytes / 8;
}

// Room that it takes to free the oldest segment: its live records once more, with the ends of
// segments that the largest of them leave unused, and the batch that says that they are there.
std::uint64_t Journal::room_to_free_oldest() const {
  return liveness_.oldest().live_bytes + 2 * liveness_.largest_bytes() + kSegmentHeaderBytes +
         4 * kBatchHeaderBytes;
}

// Kept back for everything but puts. Jobs that move write until there is idle_waste() and more;
// then there must still be room to free the oldest segment, whatever is alive in it. What is freed
// comes back in chunks, so that one may be missing; and as the log may have to be walked through
// to its end before something is found, each segment may cost a little more than it brings.
std::uint64_t Journal::reserve_bytes() const {
  const std::uint64_t live = liveness_.live_bytes();
  const std::uint64_t largest = liveness_.largest_bytes();
  const std::uint64_t segment = options_.segment_bytes;
  const std::uint64_t walk =
      std::min((live / segment + 1) * (largest + kBlockBytes), live / kLongestWalk);
  const std::uint64_t to_free = std::max({segment, largest, liveness_.largest_segment_bytes()});
  return std::min(live, to_free) + 2 * largest + idle_waste() + chunk_bytes() + walk;
}

// A byte that is appended is one less that is free, and adds 4 at most to what is kept back: 1 to
// what is alive in a segment that has to be freed, 2 as part of the largest record, and shares of
// idle_waste() and the walk.
void Journal::use_slack(std::uint64_t bytes) {
  constexpr std::int64_t kMost = 5;
  if (bytes > liveness_.largest_bytes()) slack_ = 0;  // and more to each segment of the walk
  slack_ -= kMost * static_cast<std::int64_t>(bytes);
}

// What the walk may grow by at once, when what is alive begins to fill one more segment.
std::int64_t Journal::slack_kept_back() const {
  return static_cast<std::int64_t>(liveness_.largest_bytes() + kBlockBytes);
}

bool Journal::has_room_for(std::size_t body_bytes) const {
  return has_room_for_bytes(added_bytes(kMaxTubeNameBytes, body_bytes));
}

bool Journal::has_room_for_bytes(std::uint64_t record_bytes) const {
  if (refused_ || removal_refused_) return false;
  if (!full_ && options_.max_bytes == 0) return true;
  std::uint64_t room = free_bytes();
  if (!full_ && options_.max_bytes > file_bytes()) room += options_.max_bytes - file_bytes();
  return room >= reserve_bytes() + 3 * record_bytes + kBatchHeaderBytes;
}

// --- Growth

void Journal::grow_if_needed() {
  if (failed_ || preallocator_.growing() || (stopped_ && !starved_)) return;
  const std::uint64_t lead = options_.segment_bytes / 2;
  const std::uint64_t free = free_bytes();
  const std::uint64_t reserve = reserve_bytes();
  TUBED_ASSERT(slack_ <= 0 || free >= reserve);
  if (!starved_ && free >= reserve + lead) return has_space();
  if (full_ && retry_at_ != kNever) return;
  const LogPlace needed =
      starved_ ? LogPlace{commit_[part_index_].segment, commit_[part_index_].end()} : LogPlace{};
  Preallocator::Step step = preallocator_.next_step(needed);
  const auto too_much = [&] {
    return options_.max_bytes > 0 && file_bytes() + step.to - step.from > options_.max_bytes;
  };
  // Where there is little left, not more than what is needed.
  if (starved_ && step.segment == needed.segment && (full_ || too_much())) step.to = needed.end;
  // Our own bound gives way before anything stops: compaction then brings it down again.
  at_own_bound_ = too_much();
  if (at_own_bound_ && !starved_) {
    return no_space("journal.max_bytes is reached");
  }
  preallocator_.grow(step, clock_.to_wall(host_.now()),
                     [this](const Outcome& outcome) { grown(outcome); });
}

void Journal::grown(const Outcome& outcome) {
  if (failed_) return;
  if (outcome.kind == Outcome::Kind::failed) return fail(outcome.reason);
  leave_segments();
  if (outcome.ok()) {
    // The disk may say no the next time. Only when there is as much as before it was full will what
    // is dead be removed again, and not reused.
    if (!refused_ && !removal_refused_) retry_at_ = kNever;
    if (starved_) write_part();
  } else {
    at_own_bound_ = false;  // it is the disk now
    no_space(outcome.reason);
  }
  go_on_stopping();
  host_.request_flush();
}

void Journal::no_space(const std::string& reason) {
  retry_at_ = host_.now() + kRetry;
  if (!std::exchange(full_, true)) host_.report_full(true, reason);
}

void Journal::has_space() {
  if (refused_ || removal_refused_) return;
  retry_at_ = kNever;
  if (std::exchange(full_, false)) host_.report_full(false, "");
}

// --- Compaction

bool Journal::compaction_wanted() const {
  const SegmentUse& oldest = liveness_.oldest();
  if (oldest.sequence == head_.segment || oldest.live_records == 0) return false;
  const std::uint64_t used = liveness_.used_bytes();
  const std::uint64_t live = liveness_.live_bytes();
  if (full_) {
    return used > live + idle_waste() && (at_own_bound_ || free_bytes() >= room_to_free_oldest());
  }
  return used > live + live / 2 + options_.segment_bytes / 2;
}

// On a full disk clients must not use up what it takes to free the next segment: they wait until
// that is done, unless the disk refuses it.
bool Journal::compaction_comes_first() const {
  const std::uint64_t needed = room_to_free_oldest() + options_.segment_bytes / 8;
  const bool goes_soon = dead_since_.has_value() && !removal_refused_;
  return goes_soon || (compaction_wanted() && free_bytes() < needed);
}

// One slice, which goes out with what the turn has told. True: nothing was found yet, there is more
// to look at.
bool Journal::compact() {
  struct Migration final : FactSink {
    explicit Migration(Journal& owner) : journal(owner) {}
    void fact(const Fact& fact) override {
      ++journal.records_migrated_;
      const std::uint64_t bytes = record_bytes(fact);
      moved += bytes;
      journal.append(fact, bytes);
    }
    Journal& journal;
    std::uint64_t moved = 0;
  };

  const std::uint64_t written = std::exchange(client_bytes_, 0);
  const std::uint64_t paced = kSliceBytes + written * (full_ ? kPaceWhenFull : kPace);
  const std::uint64_t budget = written == 0 ? kIdleSliceBytes : std::min(paced, kMaxSliceBytes);
  const SegmentUse& oldest = liveness_.oldest();
  Migration migration(*this);
  std::uint64_t looks = 0;
  while (oldest.live_records > 0 && run_ < oldest.added.size()) {
    const IdRun run = oldest.added[run_];
    if (run_offset_ == run.count) {
      ++run_;
      run_offset_ = 0;
      continue;
    }
    if (++looks > kLooksPerSlice) return true;
    if (migration.moved >= budget) return false;
    const JobId id = run.first + run_offset_++;
    if (liveness_.segment_of(id) == oldest.sequence) host_.describe_job(id, migration);
  }
  return oldest.live_records > 0 && migrate_pauses();
}

// True: there are more.
bool Journal::migrate_pauses() {
  const std::uint64_t oldest = liveness_.oldest().sequence;
  const Time now = host_.now();
  for (std::uint64_t looks = 0; looks < kPausesPerSlice; ++looks) {
    const auto next = liveness_.pauses().upper_bound(pause_behind_);
    if (next == liveness_.pauses().end()) {
      TUBED_ASSERT(liveness_.oldest().live_records == 0);
      return false;
    }
    pause_behind_ = next->first;
    const PauseInForce pause = next->second;
    if (pause.segment != oldest) continue;
    if (pause.until <= now) {
      liveness_.end_pause(pause_behind_);
      continue;
    }
    const Paused fact{.tube = pause_behind_, .duration = pause.duration, .until = pause.until};
    ++records_migrated_;
    append(fact, record_bytes(fact));
  }
  return true;
}

void Journal::drop_dead() {
  const SegmentUse& oldest = liveness_.oldest();
  if (removing_ || stopped_ || oldest.live_records > 0) return;
  const bool in_use =
      (!preallocator_.empty() && oldest.sequence >= preallocator_.first_segment()) ||
      oldest.sequence == head_.segment ||
      (!left_.empty() && oldest.sequence >= left_.front().file.segment);
  if (in_use) return;
  if (!dead_since_) dead_since_ = appended_;
  // Durability: what replaces it, and what made it dead, is on the disk first.
  if (synced_ < *dead_since_) {
    if (written_ >= *dead_since_) sync_wanted_ = true;
    return;
  }
  // And a later batch says so: else damage to what replaces it could pass for a torn tail.
  if (marked_ < *dead_since_) {
    if (committing_now_ || !pending_.empty()) return;
    part_for(0);
    return begin_commit();
  }
  if (removal_refused_ && retry_at_ != kNever) return;
  // On a full disk the space of a file that is removed may be gone before another file can have it.
  const bool within_bound = options_.max_bytes == 0 || file_bytes() <= options_.max_bytes;
  if (!full_ || !within_bound || removal_refused_) return remove_dead();
  if (!preallocator_.growing()) reuse_dead();
}

// Neither a longer file than others have, for which more would have to be kept back, nor one into
// which a large record does not fit.
void Journal::reuse_dead() {
  const std::uint64_t segment = liveness_.oldest().sequence;
  const auto untrimmed = untrimmed_.find(segment);
  const std::uint64_t there =
      liveness_.oldest().used_bytes + (untrimmed == untrimmed_.end() ? 0 : untrimmed->second);
  if (there < options_.segment_bytes / 2) return remove_dead();
  removing_ = true;
  preallocator_.reuse(segment, std::min(there, options_.segment_bytes), clock_.to_wall(host_.now()),
                      [this](const Outcome& outcome) {
                        if (failed_) return;
                        if (outcome.kind == Outcome::Kind::failed) return fail(outcome.reason);
                        if (!outcome.ok()) {
                          leave_segments();  // which waited for the preallocator
                          return remove_dead();
                        }
                        dead_is_gone();
                        leave_segments();
                        if (starved_) write_part();
                        go_on_stopping();
                        host_.request_flush();
                      });
}

void Journal::remove_dead() {
  removing_ = true;
  storage_.remove(segment_name(liveness_.oldest().sequence), [this](const Outcome& outcome) {
    if (failed_) return;
    if (outcome.kind == Outcome::Kind::failed) return fail(outcome.reason);
    removal_refused_ = !outcome.ok();
    if (outcome.ok()) {
      dead_is_gone();
    } else {
      removing_ = false;
      at_own_bound_ = false;
      no_space(outcome.reason);
    }
    go_on_stopping();
    host_.request_flush();
  });
}

void Journal::dead_is_gone() {
  removing_ = false;
  const std::uint64_t segment = liveness_.oldest().sequence;
  closed_bytes_ -= liveness_.oldest().used_bytes;
  if (const auto untrimmed = untrimmed_.extract(segment)) closed_bytes_ -= untrimmed.mapped();
  liveness_.drop_oldest();
  run_ = 0;
  run_offset_ = 0;
  pause_behind_.clear();
  dead_since_.reset();
  if (full_) retry_at_ = host_.now();
}

}  // namespace tubed::journal
