// EntryPlaces: which file has the record of each entry that is in force.
//
// Consecutive entries of one file are one run, so that it is small, and each operation is O(1) for
// each file.
//
// Invariant: indexes and file numbers ascend from run to run.
#pragma once

#include <cstdint>
#include <deque>

#include "cluster/types.h"

namespace tubed::cluster {

class EntryPlaces {
 public:
  // The entries from `first` on, of which there are `count`, are in that file, and no other entries
  // from `first` on are in force.
  void replace(Index first, std::uint64_t count, std::uint64_t file) {
    while (!runs_.empty() && runs_.back().first >= first) runs_.pop_back();
    if (count > 0 && (runs_.empty() || runs_.back().file != file)) runs_.push_back({first, file});
  }
  // Entries before `first` are not needed.
  void cut(Index first) {
    while (runs_.size() > 1 && runs_[1].first <= first) runs_.pop_front();
  }
  void clear() { runs_.clear(); }
  // Whether that file or an older file has an entry that is needed.
  bool any_up_to(std::uint64_t file) const { return !runs_.empty() && runs_.front().file <= file; }

 private:
  struct Run {
    Index first = 0;
    std::uint64_t file = 0;
  };
  std::deque<Run> runs_;
};

}  // namespace tubed::cluster
