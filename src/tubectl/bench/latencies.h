// Latencies: the durations of many operations.
//
// Counts them in a histogram, so that a long run needs no more memory than a short run. Keeps each
// duration only on demand.
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
  // The latency that `share` (0 to 1) of all do not exceed, to three digits.
  std::int64_t at(double share) const { return std::min(histogram_.at(share), max_); }

  // Writes every latency in nanoseconds, unordered, as four bytes, the lowest first. Latencies
  // above 4 s count as 4 s. Precondition: every latency was kept.
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
  std::uint64_t all = 0;       // done from the first to the last
  std::uint64_t measured = 0;  // of them, those within the measured time
  Clock::duration time{};      // the measured time
  Latencies latencies;         // of the measured operations

  double seconds() const { return std::chrono::duration<double>(time).count(); }
};

}  // namespace tubed::tubectl::bench
