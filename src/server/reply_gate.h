// ReplyGate: the commit gate of one client: how many of its buffered replies may leave.
//
// Bytes that were made while newest() was n leave when durable() has reached n. At most two marks
// are needed: what waits for the commit under way, and what waits for the next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "journal/record.h"

namespace tubed::server {

// How far the journal has come; all equal without one.
struct LogState {
  journal::LogNumber newest = 0;
  journal::LogNumber committing = 0;
  journal::LogNumber durable = 0;
};

class ReplyGate {
 public:
  // `buffered` bytes of replies are there; those that are new since the last call tell of the log
  // up to state.newest. Returns how many of the first may leave. O(1).
  std::size_t pass(std::size_t buffered, const LogState& state) {
    while (count_ > 0 && marks_[0].number <= state.durable) drop_first();
    const std::uint64_t made = taken_ + buffered;
    if (made > known_ && state.newest > state.durable) {
      // What one commit carries becomes durable at once: one mark does for it.
      if (count_ > 0 &&
          (marks_[count_ - 1].number > state.committing || state.newest <= state.committing)) {
        marks_[count_ - 1].number = state.newest;
      } else {
        TUBED_ASSERT(count_ < marks_.size());
        marks_[count_++] = {known_, state.newest};
      }
    }
    known_ = made;
    return static_cast<std::size_t>((count_ > 0 ? marks_[0].begin : made) - taken_);
  }

  // That many left.
  void take(std::size_t bytes) { taken_ += bytes; }

  // Replies are held back.
  bool holds() const { return count_ > 0; }

 private:
  // From byte `begin` of all that was ever made, up to the next mark.
  struct Mark {
    std::uint64_t begin = 0;
    journal::LogNumber number = 0;
  };

  void drop_first() {
    marks_[0] = marks_[1];
    --count_;
  }

  std::array<Mark, 2> marks_;
  std::size_t count_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t known_ = 0;
};

}  // namespace tubed::server
