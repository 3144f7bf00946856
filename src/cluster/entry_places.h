// EntryPlaces: which file has the valid record of each entry.
//
// Consecutive entries in one file form one run, so it is small, and each operation is O(1) per
// file.
//
// Invariant: indexes and file numbers ascend from run to run.
#pragma once

#include <cstdint>
#include <deque>

#include "cluster/types.h"

namespace tubed::cluster {

class EntryPlaces {
 public:
  // The `count` entries from `first` are in that file, and replace all other entries from `first`.
  void replace(Index first, std::uint64_t count, std::uint64_t file) {
    while (!runs_.empty() && runs_.back().first >= first) runs_.pop_back();
    if (count > 0 && (runs_.empty() || runs_.back().file != file)) runs_.push_back({first, file});
  }
  // Entries before `first` are no longer needed.
  void cut(Index first) {
    while (runs_.size() > 1 && runs_[1].first <= first) runs_.pop_front();
  }
  void clear() { runs_.clear(); }
  // True if that file or an older file has a needed entry.
  bool any_up_to(std::uint64_t file) const { return !runs_.empty() && runs_.front().file <= file; }

 private:
  struct Run {
    Index first = 0;
    std::uint64_t file = 0;
  };
  std::deque<Run> runs_;
};

}  // namespace tubed::cluster
