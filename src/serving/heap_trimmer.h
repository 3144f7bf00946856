// HeapTrimmer: returns memory of the heap to the system when a long queue has become short.
//
// Deleted bodies and arrays of jobs leave free memory in the heap of the process, and glibc does
// not return all that memory to the system.
#pragma once

#include <algorithm>
#include <cstdint>

#include "os/process.h"

namespace tubed::serving {

class HeapTrimmer {
 public:
  // `used` is the memory of all jobs, in bytes. O(1), but O(free memory) when it trims the heap: at
  // most once each time that the queue shrinks to an eighth of its peak.
  void update(std::uint64_t used) {
    peak_ = std::max(peak_, used);
    if (peak_ < kLongQueueBytes || used > peak_ / 8) return;
    os::trim_heap();
    peak_ = used;
  }

 private:
  static constexpr std::uint64_t kLongQueueBytes = 1 << 20;

  std::uint64_t peak_ = 0;  // since the heap was last trimmed
};

}  // namespace tubed::serving
