// Latencies: how long each of many things took.
//
// Counted in a histogram, so that a long run takes no memory; each is kept only if asked for.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "tubectl/bench/histogram.h"

namespace tubed::tubectl::bench {

using Clock = std::chrono::steady_clock;

class Latencies {
 public:
  explicit Latencies(bool keep_each = false) : keep_each_(keep_each) {}

  void add(Clock::duration taken);

  const Histogram& histogram() const { return histogram_; }  // in nanoseconds

  // Each one in nanoseconds, in no order, four bytes each, the lowest first; what took longer than
  // 4 s counts as 4 s. Precondition: each was kept.
  Result<void> write(const std::string& file) const;

 private:
  bool keep_each_;
  Histogram histogram_;
  std::vector<std::uint32_t> each_;
};

// What a run has measured.
struct Figures {
  std::uint64_t all = 0;       // done from the first to the last
  std::uint64_t measured = 0;  // of them, those within the measured time
  Clock::duration time{};      // the measured time
  Latencies latencies;         // of the measured ones

  double seconds() const { return std::chrono::duration<double>(time).count(); }
};

}  // namespace tubed::tubectl::bench
