#include "journal/segment_closer.h"

#include <algorithm>

namespace tubed::journal {

void SegmentCloser::close_before(std::uint64_t segment) {
  while (!preallocator_.empty() && preallocator_.first_segment() < segment &&
         !preallocator_.growing()) {
    const Preallocator::OpenFile file = preallocator_.take_first();
    closed_.set(file.segment, file.bytes);
    closing_.push_back({file, liveness_.use_of(file.segment).used_bytes, ends_.front()});
    ends_.pop_front();
  }
  close_next();
}

void SegmentCloser::close_next() {
  if (trimming_ || closing_.empty() || context_.failed) return;
  trimming_ = true;
  const Closing& next = closing_.front();
  const std::uint64_t kept = space_.full() ? next.file.bytes : context_.options.segment_bytes / 2;
  const std::uint64_t wanted = std::max(next.used_bytes, std::min(next.file.bytes, kept));
  context_.storage.trim(next.file.file, wanted,
                        [this, wanted](const Outcome& outcome) { closed(outcome, wanted); });
}

// If the file was not trimmed for lack of space, it keeps its length but is still on disk.
void SegmentCloser::closed(const Outcome& outcome, std::uint64_t wanted_bytes) {
  trimming_ = false;
  if (!context_.continues_after(outcome)) return;
  const Closing& first = closing_.front();
  context_.storage.close(first.file.file);
  if (outcome.ok()) closed_.set(first.file.segment, wanted_bytes);
  synced_ = std::max(synced_, first.end);
  closing_.pop_front();
  close_next();
  context_.advance();
}

bool SegmentCloser::is_oldest_open(std::uint64_t segment) const {
  return idle() && !preallocator_.empty() && preallocator_.first_segment() == segment;
}

bool SegmentCloser::is_closed(std::uint64_t segment) const {
  if (!idle()) return segment < closing_.front().file.segment;
  return preallocator_.empty() || segment < preallocator_.first_segment();
}

}  // namespace tubed::journal
