// LatencyHistogram: counts times for percentiles that are at most 5 % off.
//
// A power of ten is cut into 35 buckets: ten from 1 to 2, fifteen from 2 to 5 and ten from 5 to 10.
// So a bucket is at most a tenth of its lower end wide, and its middle at most 5 % from any time in
// it. The powers reach from 1 us to 115 days. Shorter times share one bucket; a longer time counts
// as the longest. A time that equals the end of a bucket belongs to it.
//
// The counters of a power of ten (288 bytes) are allocated by the first time that needs them: a
// tube whose jobs take 1 ms to 1 s has three. Each of kBounds is the end of a bucket, so counts()
// is exact.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/histogram.h"
#include "base/time.h"

namespace tubed {

class LatencyHistogram {
 public:
  // The bounds of counts(), in nanoseconds.
  static constexpr std::array<std::int64_t, 8> kBounds = {
      1'000'000,      10'000'000,     100'000'000,     1'000'000'000,
      10'000'000'000, 60'000'000'000, 600'000'000'000, 3'600'000'000'000};

  // A negative time counts as 0. O(1).
  void add(Duration time) {
    const std::int64_t nanoseconds = time.count();
    ++total_;
    if (nanoseconds <= kShortest) {
      ++shortest_;
      sum_ += static_cast<double>(nanoseconds < 0 ? 0 : nanoseconds);
    } else {
      sum_ += static_cast<double>(nanoseconds);
      add_longer(nanoseconds);
    }
  }

  // The number of calls of add().
  std::uint64_t total() const { return total_; }
  double sum_seconds() const { return sum_ / 1e9; }

  // The shortest time that at least `share` (0 to 1) of all do not exceed, with an error of at most
  // 5 % above 1 us; 0 if no time was added. O(powers + buckets of a power).
  Duration at(double share) const;

  // How many times fell between the bounds, in seconds. O(buckets).
  HistogramCounts counts() const;

 private:
  static constexpr std::int64_t kShortest = 1'000;
  static constexpr std::size_t kSteps = 35;   // buckets of a power of ten
  static constexpr std::size_t kPowers = 13;  // from 10^3 to 10^16 ns

  struct Power {
    std::uint64_t total = 0;
    std::array<std::uint64_t, kSteps> counts{};
  };

  void add_longer(std::int64_t nanoseconds);
  [[gnu::noinline]] Power* make_power(std::size_t power);

  std::uint64_t total_ = 0;
  double sum_ = 0;              // nanoseconds of many long waits exceed 64 bits
  std::uint64_t shortest_ = 0;  // times of at most 1 us
  std::array<std::unique_ptr<Power>, kPowers> powers_;
};

}  // namespace tubed
