// Latencies: the durations of many operations.
//
// Counts durations in a histogram: memory does not grow with the run. Keeps each duration only on
// request.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/histogram.h"
#include "base/result.h"

namespace tubed::tubectl::bench {

using Clock = std::chrono::steady_clock;

class Latencies {
 public:
  explicit Latencies(bool keep_each = false) : keep_each_(keep_each) {}

  void add(Clock::duration taken);

  std::uint64_t count() const { return count_; }
  // In nanoseconds; 0 without operations.
  double mean() const;                       // exact
  std::int64_t max() const { return max_; }  // exact
  // The latency that a `share` (0 to 1) of the operations does not exceed, to three digits.
  std::int64_t at(double share) const { return std::min(histogram_.at(share), max_); }

  // Writes every latency in nanoseconds as four bytes, little-endian, in no particular order.
  // Latencies above 4 s are written as 4 s. Precondition: every latency was kept.
  Result<void> write(const std::string& file) const;

 private:
  bool keep_each_;
  Percentiles histogram_;
  std::uint64_t count_ = 0;
  std::int64_t max_ = 0;
  std::vector<std::uint32_t> each_;
};

// The measurements of a run.
struct Figures {
  std::uint64_t all = 0;       // from the first operation to the last
  std::uint64_t measured = 0;  // within the measured time
  Clock::duration time{};      // the measured time
  Latencies latencies;         // of the measured operations

  double seconds() const { return std::chrono::duration<double>(time).count(); }
};

}  // namespace tubed::tubectl::bench
