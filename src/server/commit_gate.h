// CommitGate: how many of one client's buffered replies may be sent (law L4).
//
// A reply that was made while the log's appended() was n is sent when durable() has reached n. The
// gate holds a queue of marks, each with the first byte and the Lsn that this byte and those after
// it wait for, so that any number of commits may be in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/fact_log.h"

namespace tubed::server {

class CommitGate {
 public:
  // `buffered` bytes of replies are buffered; those that are new since the last call were made up
  // to `appended`. Returns how many of the first may be sent. O(1) amortised.
  std::size_t sendable(std::size_t buffered, Lsn appended, Lsn durable) {
    if (!marks_.empty()) drop_reached(durable);
    const std::uint64_t made = sent_ + buffered;
    if (made > known_ && appended > durable) add_mark(appended);
    known_ = made;
    return static_cast<std::size_t>((marks_.empty() ? made : marks_.front().begin) - sent_);
  }

  // That many were sent.
  void sent(std::size_t bytes) { sent_ += bytes; }

  // Replies are held back.
  bool holds() const { return !marks_.empty(); }

 private:
  // Bytes from `begin` of all that were ever made, up to the next mark, wait for `lsn`.
  struct Mark {
    std::uint64_t begin = 0;
    Lsn lsn = 0;
  };
  // More than a commit has ticks, mostly; beyond it neighbours wait for the later of the two.
  static constexpr std::size_t kMostMarks = 64;

  void drop_reached(Lsn durable) {
    std::size_t reached = 0;
    while (reached < marks_.size() && marks_[reached].lsn <= durable) ++reached;
    marks_.erase(marks_.begin(), marks_.begin() + static_cast<std::ptrdiff_t>(reached));
  }
  void add_mark(Lsn lsn) {
    if (!marks_.empty() && marks_.back().lsn == lsn) return;
    if (marks_.size() == kMostMarks) {
      // Not the first, which waits for the next commit to end, nor the last, which is not in it.
      marks_[1].lsn = marks_[2].lsn;
      marks_.erase(marks_.begin() + 2);
    }
    marks_.push_back({known_, lsn});
  }

  std::vector<Mark> marks_;  // by begin and by lsn
  std::uint64_t sent_ = 0;
  std::uint64_t known_ = 0;
};

}  // namespace tubed::server
