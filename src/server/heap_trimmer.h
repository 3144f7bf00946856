// HeapTrimmer: gives memory of the heap back to the system once a long queue has become short.
//
// Bodies and arrays of jobs that are deleted stay in the heap of the process as free memory, and
// glibc does not return all of it by itself.
#pragma once

#include <algorithm>
#include <cstdint>

#include "os/process.h"

namespace tubed::server {

class HeapTrimmer {
 public:
  // `used`: the memory of all jobs now, in bytes. O(1), and O(free memory) when it trims: at most
  // once for each time that the queue has shrunk to an eighth.
  void update(std::uint64_t used) {
    peak_ = std::max(peak_, used);
    if (peak_ < kLongQueueBytes || used > peak_ / 8) return;
    os::give_back_heap();
    peak_ = used;
  }

 private:
  static constexpr std::uint64_t kLongQueueBytes = 1 << 20;

  std::uint64_t peak_ = 0;  // since the heap was last trimmed
};

}  // namespace tubed::server
