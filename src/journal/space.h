// Space: how much room the journal has, how much of it is reserved, and when it grows.
//
// Free bytes are allocated by the Preallocator beyond the head of the log: writes to them do not
// run out of space. The protocol:
//
//  1. While the disk has space, the files grow ahead of need: at the end of each tick, one step of
//     the Preallocator in the background, until the reserve and half a segment more are free.
//  2. The reserve is for everything except puts. It suffices to record the end of every job and to
//     free the oldest segment by compaction, however much of it is live (reserve_bytes() in
//     space.cc). has_room_for() refuses puts, and congested() holds back commands, before they
//     touch it.
//  3. If the disk refuses a step, or the step would exceed max_bytes, the journal is full. The host
//     is informed, puts are refused unless they fit into the free bytes, and the step is retried
//     every second. No space is returned that might not be recovered: a closed file keeps its
//     length (SegmentCloser), and the file of a dead segment is reused for the next
//     (SegmentRemover).
//  4. While the journal is full, compaction runs as soon as it can free more than it writes, and
//     has priority: clients wait until the oldest segment is free (Compactor::comes_first()).
//  5. A commit that lacks room despite all this is starved. The files then grow by no more than it
//     needs, beyond max_bytes if necessary, because the server must not come to a halt.
//  6. A write or a removal that the disk refuses is retried every second. Until it succeeds the
//     journal stays full, and has_room_for() refuses every put.
//  7. When the reserve and half a segment are free again, the journal is no longer full.
//  8. All files together have at most twice the live bytes plus three segments: the promise. While
//     segments of a larger setting remain, their size counts, because the reserve suffices to free
//     one of them. Beyond almost two segments, congested() holds back commands while compaction or
//     a removal frees bytes. The third segment is for the copies, and for segments being removed.
//     If many jobs have died at once and freeing takes long, commands are admitted now and then:
//     enough to make another eighth of a segment dead, which is less than is freed meanwhile
//     (note_freeing_step()).
//
// Invariant: while slack_ is positive, at least reserve_bytes() are free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "journal/closed_files.h"
#include "journal/context.h"
#include "journal/preallocator.h"
#include "journal/segment_liveness.h"

namespace tubed::journal {

class Space {
 public:
  Space(Context& context, const SegmentLiveness& liveness, Preallocator& preallocator,
        const ClosedFiles& closed);

  // The options have changed.
  void apply_options();

  // O(open files), like all functions that compare with the reserve.
  std::uint64_t free_bytes() const;
  std::uint64_t file_bytes() const { return closed_.bytes() + preallocator_.bytes(); }
  // Returns how many of the used bytes may be dead although nothing is worth compacting.
  std::uint64_t idle_waste() const;
  // Returns an upper bound on the bytes needed to copy the live records of the oldest segment.
  std::uint64_t bytes_to_free_oldest() const;
  bool exceeds_bound() const;
  // True if commands must wait while bytes are being freed: all files together exceed twice the
  // live bytes by almost two segments, and commands have not waited for long. O(1).
  bool holds_back() const { return file_bytes() > 2 * needed_bytes() + hold_back_from_; }
  // A slice of compaction has run, or a segment was removed.
  void note_freeing_step();

  // True if clients may append a record of this size. O(1) unless the journal is full or bounded.
  bool has_room_for(std::uint64_t record_bytes) const {
    if (write_refused_ || removal_refused_) return false;
    if (!full_ && context_.options.max_bytes == 0) return true;
    return has_bounded_room_for(record_bytes);
  }
  // True if less than the reserve is free. O(1) while slack_ lasts.
  bool lacks_reserve() const { return slack_ <= 0 && compare_with_reserve(); }

  // A record is about to be appended.
  void use(std::uint64_t bytes);
  // The head moves to the next segment, so unused bytes of the old segment are no longer free.
  void forget_slack() { slack_ = growth_slack_ = 0; }

  bool full() const { return full_; }
  // True if the journal is full because of max_bytes, not because of the disk.
  bool at_own_bound() const { return at_own_bound_; }

  // The disk had no room for a write, or has accepted it on a retry.
  void refuse_write(const std::string& reason);
  void accept_write() { write_refused_ = false; }
  bool write_refused() const { return write_refused_; }
  // The same for the removal of a dead segment.
  void refuse_removal(const std::string& reason);
  void accept_removal() { removal_refused_ = false; }
  bool removal_refused() const { return removal_refused_; }

  // Called at the end of a tick. Takes the next step of growth if necessary. `starved` is the place
  // that a commit needs and does not have. Steps 1, 3 and 5.
  void grow_if_needed(std::optional<LogPlace> starved);

  // Returns when a refused operation is retried; kNever: no operation was refused.
  Time retry_at() const { return retry_at_; }
  // Makes the next opportunity retry: the disk may have more space.
  void retry_now();
  // Returns true when it is time to retry.
  bool take_retry(Time now);

 private:
  std::uint64_t chunk_bytes() const;
  std::uint64_t reserve_bytes() const;
  // Returns the bytes of the `Held` records that the copies of this many jobs may have.
  std::uint64_t held_bytes(std::uint64_t jobs) const { return jobs * held_bytes_; }
  // Returns the bytes of a log of live records alone, with a `Held` for each job if they are
  // recorded.
  std::uint64_t needed_bytes() const {
    return liveness_.live_bytes() + held_bytes(liveness_.jobs());
  }
  bool has_bounded_room_for(std::uint64_t record_bytes) const;
  // Returns true if less is free. Sets slack_. O(open files).
  bool compare_with_reserve() const;
  // Returns the bytes that can be used while `free` certainly stays above `needed`.
  std::int64_t slack_of(std::uint64_t free, std::uint64_t needed) const;
  void grown(const Outcome& outcome);
  void note_full(const std::string& reason);
  void note_room();

  Context& context_;
  const SegmentLiveness& liveness_;
  Preallocator& preallocator_;
  const ClosedFiles& closed_;

  std::uint64_t held_bytes_ = 0;      // of a `Held`; 0: not recorded
  std::uint64_t promised_bytes_ = 0;  // in addition to twice the live bytes
  std::uint64_t hold_back_from_ = 0;  // the same, or more after a long hold
  int steps_held_back_ = 0;
  // Bytes that may be used before the free bytes are compared again with the reserve, or with the
  // reserve plus the lead of the growth.
  mutable std::int64_t slack_ = 0;
  std::int64_t growth_slack_ = 0;
  std::int64_t slack_per_byte_ = 0;  // reduction per appended byte
  bool full_ = false;
  bool at_own_bound_ = false;
  bool write_refused_ = false;
  bool removal_refused_ = false;
  Time retry_at_ = kNever;
};

}  // namespace tubed::journal
