#include "journal/segment_remover.h"

#include <algorithm>

#include "base/planted.h"

// The steps are numbered in segment_remover.h.
namespace tubed::journal {

void SegmentRemover::go_on() {
  const SegmentUse& oldest = liveness_.oldest();
  if (running_ || context_.closing || oldest.live_records > 0) return;
  const bool is_head = oldest.sequence == liveness_.newest().sequence;
  if (is_head || !closer_.is_closed(oldest.sequence)) return;
  if (!dead_since_) {
    dead_since_ = appender_.appended();
    dead_up_to_ = liveness_.last_of_the_dead();
  }
  if (!is_confirmed(*dead_since_) && !TUBED_PLANTED(dead_segments_are_not_confirmed)) return;
  if (space_.removal_refused() && space_.retry_at() != kNever) return;
  if (!space_.full() || space_.exceeds_bound() || space_.removal_refused()) return remove();
  if (!preallocator_.growing()) reuse();
}

// Steps 3 and 4.
bool SegmentRemover::is_confirmed(Lsn position) {
  if (syncer_.synced() < position) {
    if (syncer_.written() >= position) syncer_.request();
    return false;
  }
  if (committer_.confirmed() >= position) return true;
  if (!committer_.in_flight() && appender_.pending().empty()) {
    appender_.begin_batch();
    committer_.begin();
  }
  return false;
}

// The new file is not longer than usual, because the reserve grows with the longest; and not
// shorter than half of that, because a large record would not fit.
void SegmentRemover::reuse() {
  const std::uint64_t segment = liveness_.oldest().sequence;
  const std::uint64_t bytes = closed_.bytes_of(segment);
  const std::uint64_t complete = context_.options.segment_bytes;
  if (bytes < complete / 2) return remove();
  running_ = true;
  preallocator_.reuse(segment, std::min(bytes, complete), context_.wall_time(),
                      [this](const Outcome& outcome) {
                        if (!context_.continues_after(outcome)) return;
                        if (outcome.ok()) {
                          dropped();
                        } else {
                          remove();
                        }
                        context_.advance();
                      });
}

void SegmentRemover::remove() {
  running_ = true;
  context_.storage.remove(segment_name(liveness_.oldest().sequence),
                          [this](const Outcome& outcome) {
                            if (!context_.continues_after(outcome)) return;
                            if (outcome.ok()) {
                              space_.accept_removal();
                              dropped();
                            } else {
                              running_ = false;
                              space_.refuse_removal(outcome.reason);
                            }
                            context_.advance();
                          });
}

void SegmentRemover::dropped() {
  running_ = false;
  closed_.drop(liveness_.oldest().sequence);
  const bool is_last = liveness_.oldest().sequence == dead_up_to_;
  liveness_.drop_oldest();
  if (is_last || TUBED_PLANTED(each_segment_is_confirmed)) dead_since_.reset();
  space_.note_freeing_step();
  if (space_.full()) space_.retry_now();
}

}  // namespace tubed::journal
