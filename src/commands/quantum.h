// Quantum: the work that a conversation may still do in a tick, in units of one command.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tubed::commands {

class Quantum {
 public:
  void begin(std::uint32_t work) { left_ = work; }
  std::uint32_t left() const { return left_; }

  // Subtracts `work`, or all that is left.
  void spend(std::uint64_t work) {
    left_ -= static_cast<std::uint32_t>(std::min<std::uint64_t>(work, left_));
  }
  void spend_all() { left_ = 0; }

  // Subtracts the cost of a step that has written so many bytes of replies and has walked over so
  // many entries of watch lists or lists of jobs. A step that has done neither costs nothing.
  void charge(std::size_t reply_bytes, std::uint64_t entries_walked) {
    if (reply_bytes == 0 && entries_walked == 0) return;
    spend(1 + reply_bytes / kReplyBytesPerWork + entries_walked / kEntriesPerWork);
  }

 private:
  // Each of these counts as one unit.
  static constexpr std::size_t kReplyBytesPerWork = 256;
  static constexpr std::uint64_t kEntriesPerWork = 64;

  std::uint32_t left_ = 0;
};

}  // namespace tubed::commands
