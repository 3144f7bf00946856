// Histogram: how often a number fell between which bounds. One array of counters: to add is a few
// compares and touches no other memory.
//
// Its scale is a type, which names the bounds, rising, and how many make the unit in which they are
// told. Invariant: the counts sum up to how often add() was called.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.h"

namespace tubed {

// Any histogram, to be looked at while it stays as it is.
struct HistogramView {
  std::span<const std::int64_t> bounds;
  std::span<const std::uint64_t> counts;  // one a bound, not cumulative; the last: above all
  double sum = 0;
  double per_unit = 1;

  std::uint64_t total() const {
    std::uint64_t total = 0;
    for (const std::uint64_t count : counts) total += count;
    return total;
  }
};

template <class Scale>
class Histogram {
 public:
  // A bound belongs to what is below it. O(bounds).
  void add(std::int64_t value) {
    std::size_t place = 0;
    while (place < kBounds && value > Scale::kBounds[place]) ++place;
    ++counts_[place];
    // Nanoseconds of many long waits are more than 64 bits hold.
    sum_ += static_cast<double>(value);
  }
  void add(Duration duration) { add(duration.count()); }

  HistogramView view() const {
    return {.bounds = Scale::kBounds, .counts = counts_, .sum = sum_, .per_unit = Scale::kPerUnit};
  }

 private:
  static constexpr std::size_t kBounds = std::size(Scale::kBounds);

  std::array<std::uint64_t, kBounds + 1> counts_{};
  double sum_ = 0;
};

// For what takes up to hours, told in seconds.
struct LongTimeScale {
  static constexpr std::array<std::int64_t, 8> kBounds = {
      1'000'000,      10'000'000,     100'000'000,     1'000'000'000,
      10'000'000'000, 60'000'000'000, 600'000'000'000, 3'600'000'000'000};
  static constexpr double kPerUnit = 1e9;
};

// For what should take milliseconds at most, told in seconds.
struct ShortTimeScale {
  static constexpr std::array<std::int64_t, 10> kBounds = {
      100'000,   200'000,    500'000,    1'000'000,   2'000'000,
      5'000'000, 10'000'000, 50'000'000, 200'000'000, 1'000'000'000};
  static constexpr double kPerUnit = 1e9;
};

// For how many there are of something.
struct CountScale {
  static constexpr std::array<std::int64_t, 10> kBounds = {1,  2,   5,   10,  20,
                                                           50, 100, 200, 500, 1000};
  static constexpr double kPerUnit = 1;
};

using LongTimes = Histogram<LongTimeScale>;
using ShortTimes = Histogram<ShortTimeScale>;
using Counts = Histogram<CountScale>;

}  // namespace tubed
