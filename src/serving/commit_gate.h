// CommitGate: decides how many of a client's buffered replies may be sent (law L4).
//
// A reply that was made while the log's appended() was n is sent when durable() has reached n. The
// gate holds a queue of marks: each has the position of a byte, and the Lsn for which the bytes
// from this position wait. Any number of commits may be in flight.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "facts/fact_log.h"

namespace tubed::serving {

class CommitGate {
 public:
  // Returns how many of the first `buffered` bytes may be sent. `buffered`: all bytes of replies
  // that are not sent yet; the bytes that are new since the last call wait for `appended`.
  // `durable`: the position up to which the log is durable. O(1) amortised.
  std::size_t sendable(std::size_t buffered, Lsn appended, Lsn durable) {
    if (!marks_.empty()) drop_reached(durable);
    const std::uint64_t made = sent_ + buffered;
    if (made > known_ && appended > durable) add_mark(appended);
    known_ = made;
    return static_cast<std::size_t>((marks_.empty() ? made : marks_.front().begin) - sent_);
  }

  // `bytes` bytes were sent; at most what sendable() has returned.
  void sent(std::size_t bytes) { sent_ += bytes; }

  // True if replies are held back, as of the last call of sendable().
  bool holds() const { return !marks_.empty(); }

 private:
  // The bytes from `begin` up to the next mark wait for `lsn`. Positions count all bytes of replies
  // that were ever made for this client.
  struct Mark {
    std::uint64_t begin = 0;
    Lsn lsn = 0;
  };
  // Each tick in which replies are made adds a mark. A commit seldom takes as many ticks; if it
  // does, two neighbouring marks are merged into the later Lsn.
  static constexpr std::size_t kMaxMarks = 64;

  void drop_reached(Lsn durable) {
    std::size_t reached = 0;
    while (reached < marks_.size() && marks_[reached].lsn <= durable) ++reached;
    marks_.erase(marks_.begin(), marks_.begin() + static_cast<std::ptrdiff_t>(reached));
  }
  void add_mark(Lsn lsn) {
    if (!marks_.empty() && marks_.back().lsn == lsn) return;
    if (marks_.size() == kMaxMarks) {
      // Not the first mark, because the commit in flight is likely to release it, and not the last,
      // which is the youngest.
      marks_[1].lsn = marks_[2].lsn;
      marks_.erase(marks_.begin() + 2);
    }
    marks_.push_back({known_, lsn});
  }

  std::vector<Mark> marks_;  // ascending by `begin` and by `lsn`
  std::uint64_t sent_ = 0;   // bytes
  std::uint64_t known_ = 0;  // bytes that were made before the last call of sendable()
};

}  // namespace tubed::serving
