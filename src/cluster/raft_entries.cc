#include "cluster/raft_entries.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "cluster/raft_file.h"

namespace tubed::cluster {

const Entry& RaftEntries::at(Index index) const {
  TUBED_ASSERT(index >= first_ && index <= last());
  return slots_[index - first_].entry;
}

Term RaftEntries::term_of(Index index) const {
  return index >= first_ && index <= last() ? slots_[index - first_].entry.term : 0;
}

// Returns the end of the entry, or of the nearest entry that is retained.
std::uint64_t RaftEntries::end_of(Index index) const {
  return index < first_ || slots_.empty() ? begin_ : slots_[std::min(index, last()) - first_].end;
}

std::uint64_t RaftEntries::bytes_of(Index first, Index last) const {
  return first > last ? 0 : end_of(last) - end_of(std::max<Index>(first, 1) - 1);
}

void RaftEntries::add(Entry entry) {
  const std::uint64_t end = end_of(last()) + record_bytes(entry);
  slots_.push_back({.entry = std::move(entry), .end = end});
}

void RaftEntries::drop_from(Index first) {
  TUBED_ASSERT(first >= first_);
  while (last() >= first) slots_.pop_back();
}

void RaftEntries::drop_before(Index first) {
  TUBED_ASSERT(first <= last() + 1);
  for (; first_ < first; ++first_) {
    begin_ = slots_.front().end;
    slots_.pop_front();
  }
}

void RaftEntries::restart_at(Index first) {
  slots_.clear();
  first_ = first;
}

}  // namespace tubed::cluster
