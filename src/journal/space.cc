#include "journal/space.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/planted.h"

// congested() is called before each command, so it must not compare the free bytes with the reserve
// each time. The comparison is made once, and its surplus becomes slack_ (growth_slack_ at the end
// of a tick). Each appended record subtracts from the slack the most by which it can reduce the
// surplus; the comparison is repeated only when the slack is used up.
namespace tubed::journal {

namespace {

constexpr std::uint64_t kBlockBytes = 4096;
constexpr std::chrono::seconds kRetry{1};

// An appended byte reduces the free bytes by one and adds at most 4 to the reserve: 1 to the live
// bytes of a segment that has to be freed, 2 as part of the largest record, and shares of
// idle_waste() and the walk. A `Held` of the job adds to three of these, and an `Added` has at
// least 80 bytes.
constexpr std::int64_t kMostPerByte = 5;
constexpr std::int64_t kMostPerByteWithHeld = 7;

// As divisors of the live bytes: the waste that compaction tolerates, and the most that a walk
// through the whole log may cost.
constexpr std::uint64_t kLiveShare = 64;
constexpr std::uint64_t kLongestWalk = 8;

// Commands are held back for this many slices of compaction and removals of segments.
constexpr int kLongestHold = 8;

}  // namespace

Space::Space(Context& context, const SegmentLiveness& liveness, Preallocator& preallocator,
             const ClosedFiles& closed)
    : context_(context), liveness_(liveness), preallocator_(preallocator), closed_(closed) {
  apply_options();
}

void Space::apply_options() {
  forget_slack();
  const std::uint64_t segment = context_.options.segment_bytes;
  held_bytes_ = context_.options.reservations ? kHeldBytes : 0;
  promised_bytes_ = hold_back_from_ = 2 * segment - segment / 8;
  slack_per_byte_ = context_.options.reservations ? kMostPerByteWithHeld : kMostPerByte;
  preallocator_.set_sizes({.segment_bytes = segment, .chunk_bytes = chunk_bytes()});
  if (full_) retry_now();
}

// --- How much

std::uint64_t Space::chunk_bytes() const {
  const std::uint64_t eighth = context_.options.segment_bytes / 8;
  return std::max(eighth + kBlockBytes - 1 - (eighth + kBlockBytes - 1) % kBlockBytes, kBlockBytes);
}

std::uint64_t Space::free_bytes() const {
  return preallocator_.bytes_beyond(liveness_.head());
}

bool Space::exceeds_bound() const {
  return context_.options.max_bytes > 0 && file_bytes() > context_.options.max_bytes;
}

// The waste in a log of live records alone: each segment has a header and the batch headers of a
// slice of compaction that began in it, of a slice that ended in it, and of the batch that allows
// an older segment to be removed. On a full disk only waste beyond that is worth copying; otherwise
// the same records would be copied over and over.
std::uint64_t Space::idle_waste() const {
  const std::uint64_t segments = liveness_.newest().sequence - liveness_.oldest().sequence + 1;
  return liveness_.live_bytes() / kLiveShare +
         segments * (kSegmentHeaderBytes + 4 * kBatchHeaderBytes) +
         context_.options.segment_bytes / 8 + held_bytes(liveness_.jobs());
}

// Counts the live records of the oldest segment, the ends of segments that the largest of them
// leave unused, and the batch that confirms the copies.
std::uint64_t Space::bytes_to_free_oldest() const {
  return liveness_.oldest().live_bytes + held_bytes(liveness_.oldest().live_records + 2) +
         2 * liveness_.largest_bytes() + kSegmentHeaderBytes + 4 * kBatchHeaderBytes;
}

// Records other than puts produce waste until compaction starts, at idle_waste(). Then there must
// still be room to free the oldest segment, however much of it is live. Freed space returns in
// chunks, so one chunk may be missing. The copies may have a `Held` each: in the oldest segment at
// most half its bytes, in all segments together `held`. Compaction may also have to walk through
// the whole log before it finds dead records, and each segment may cost a little more than it
// frees.
std::uint64_t Space::reserve_bytes() const {
  const std::uint64_t live = liveness_.live_bytes();
  const std::uint64_t held = held_bytes(liveness_.jobs());
  const std::uint64_t largest = liveness_.largest_bytes() + held_bytes(1);
  const std::uint64_t segment = context_.options.segment_bytes;
  const std::uint64_t walk =
      std::min((live / segment + 1) * (largest + kBlockBytes), live / kLongestWalk);
  std::uint64_t to_free = std::max({segment, largest, liveness_.largest_segment_bytes()});
  if (context_.options.reservations) to_free += to_free / 2;
  return std::min(live + held, to_free) + 2 * largest + idle_waste() + chunk_bytes() + walk + held;
}

// --- Admission

bool Space::has_bounded_room_for(std::uint64_t record_bytes) const {
  const std::uint64_t bound = context_.options.max_bytes;
  std::uint64_t room = free_bytes();
  if (!full_ && bound > file_bytes()) room += bound - file_bytes();
  return room >= reserve_bytes() + 3 * record_bytes + kBatchHeaderBytes;
}

// The slack leaves out part of the surplus: it covers the sudden growth of the walk when the live
// bytes begin to fill another segment.
bool Space::compare_with_reserve() const {
  const std::uint64_t free = free_bytes();
  const std::uint64_t reserve = reserve_bytes();
  slack_ = slack_of(free, reserve);
  return free < reserve;
}

std::int64_t Space::slack_of(std::uint64_t free, std::uint64_t needed) const {
  const std::uint64_t next_segment = liveness_.largest_bytes() + kBlockBytes;
  return static_cast<std::int64_t>(free - needed) - static_cast<std::int64_t>(next_segment);
}

// A record that is larger than all before adds to every segment of the walk.
void Space::use(std::uint64_t bytes) {
  if (bytes > liveness_.largest_bytes()) forget_slack();
  slack_ -= slack_per_byte_ * static_cast<std::int64_t>(bytes);
  growth_slack_ -= slack_per_byte_ * static_cast<std::int64_t>(bytes);
}

// --- Growth

// Commands wait for fewer steps if their own removals have exceeded the promise.
void Space::note_freeing_step() {
  const std::uint64_t beyond = file_bytes() - std::min(file_bytes(), 2 * needed_bytes());
  const std::uint64_t lenient =
      std::max(promised_bytes_, beyond + context_.options.segment_bytes / 8);
  if (holds_back()) {
    if (++steps_held_back_ < kLongestHold || TUBED_PLANTED(hold_lasts_until_all_is_freed)) return;
    hold_back_from_ = lenient;
  } else {
    hold_back_from_ = std::min(hold_back_from_, lenient);
  }
  steps_held_back_ = 0;
}

void Space::grow_if_needed(std::optional<LogPlace> starved) {
  if (context_.failed || preallocator_.growing() || (context_.closing && !starved)) return;
  if (!starved && !full_ && growth_slack_ > 0) return;
  const std::uint64_t lead = context_.options.segment_bytes / 2;
  const std::uint64_t free = free_bytes();
  const std::uint64_t reserve = reserve_bytes();
  TUBED_ASSERT(slack_ <= 0 || free >= reserve);
  if (!starved && free >= reserve + lead) {
    growth_slack_ = slack_of(free, reserve + lead);
    if (full_) note_room();
    return;
  }
  if (full_ && retry_at_ != kNever) return;
  Preallocator::Step step = preallocator_.next_step(starved.value_or(LogPlace{}));
  const std::uint64_t length = file_bytes() + step.to - step.from;
  const std::uint64_t needed = needed_bytes() + context_.options.segment_bytes;
  if (!starved && !full_ && free >= reserve && length > needed + needed / 2) return;  // step 8
  const std::uint64_t bound = context_.options.max_bytes;
  const auto exceeds = [&] { return bound > 0 && file_bytes() + step.to - step.from > bound; };
  const bool is_needed = starved && step.segment == starved->segment;
  if (is_needed && (full_ || exceeds())) step.to = starved->end;
  at_own_bound_ = exceeds();
  if (at_own_bound_ && !starved) return note_full("journal.max_bytes is reached");
  preallocator_.grow(step, context_.wall_time(),
                     [this](const Outcome& outcome) { grown(outcome); });
}

void Space::grown(const Outcome& outcome) {
  if (!context_.continues_after(outcome)) return;
  if (!outcome.ok()) {
    at_own_bound_ = false;  // now the disk refuses
    note_full(outcome.reason);
  } else if (!write_refused_ && !removal_refused_) {
    // The journal stays full: the disk may refuse the next step.
    retry_at_ = kNever;
  }
  context_.advance();
}

// --- Full, and no longer

void Space::refuse_write(const std::string& reason) {
  write_refused_ = true;
  note_full(reason);
}

void Space::refuse_removal(const std::string& reason) {
  removal_refused_ = true;
  at_own_bound_ = false;
  note_full(reason);
}

void Space::note_full(const std::string& reason) {
  retry_at_ = context_.host.now() + kRetry;
  if (!std::exchange(full_, true)) context_.host.report_full(true, reason);
}

void Space::note_room() {
  if (write_refused_ || removal_refused_) return;
  retry_at_ = kNever;
  full_ = false;
  context_.host.report_full(false, "");
}

void Space::retry_now() {
  retry_at_ = context_.host.now();
}

bool Space::take_retry(Time now) {
  if (retry_at_ > now) return false;
  retry_at_ = kNever;
  return true;
}

}  // namespace tubed::journal
