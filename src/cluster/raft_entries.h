// RaftEntries: the retained entries of a replicated log, in memory, with their sizes on disk.
#pragma once

#include <cstdint>
#include <deque>

#include "cluster/types.h"

namespace tubed::cluster {

class RaftEntries {
 public:
  // The index of the oldest entry; last() + 1 without entries.
  Index first() const { return first_; }
  // The index of the newest entry; first() - 1 without entries.
  Index last() const { return first_ + slots_.size() - 1; }
  // Precondition: first() <= index <= last().
  const Entry& at(Index index) const;
  // Returns 0 if the entry is not retained.
  Term term_of(Index index) const;
  // Returns the bytes on disk of the entries from `first` to `last`, not counting entries that are
  // not retained. O(1).
  std::uint64_t bytes_of(Index first, Index last) const;

  // Adds an entry after the last.
  void add(Entry entry);
  // Drops the entries from `first`. Precondition: first >= first().
  void drop_from(Index first);
  // Drops the entries before `first`. Precondition: first <= last() + 1.
  void drop_before(Index first);
  // Drops all entries: the next is number `first`.
  void restart_at(Index first);

 private:
  struct Slot {
    Entry entry;
    std::uint64_t end = 0;  // total bytes of this and all earlier entries since the start
  };

  std::uint64_t end_of(Index index) const;

  Index first_ = 1;
  std::deque<Slot> slots_;
  std::uint64_t begin_ = 0;  // end of the entry before the first
};

}  // namespace tubed::cluster
