// Histogram: counts how many numbers fell into each bucket of a scale. add() takes a few
// instructions and changes one counter; nothing is allocated after construction.
//
// A scale is a type. A BoundedScale lists its bounds in ascending order and says how many of its
// numbers make the unit in which they are reported. Its few counters are part of the object.
// LogScale computes its many buckets; their counters are on the heap, and at() reads percentiles
// from them. Invariant: the counts sum to the number of calls of add().
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "base/time.h"

namespace tubed {

// The counts of a histogram with listed bounds.
struct HistogramCounts {
  static constexpr std::size_t kMostBounds = 10;

  std::span<const std::int64_t> bounds;
  // One for each bound, not cumulative; the next: above all. The rest are 0.
  std::array<std::uint64_t, kMostBounds + 1> counts{};
  double sum = 0;
  double per_unit = 1;

  std::uint64_t total() const {
    std::uint64_t total = 0;
    for (const std::uint64_t count : counts) total += count;
    return total;
  }
};

template <class Scale>
concept BoundedScale = requires {
  Scale::kBounds;
  Scale::kPerUnit;
};

template <class Scale>
class Histogram {
 public:
  // O(bounds); O(1) with LogScale.
  void add(std::int64_t value) {
    ++counts_[bucket_of(value)];
    // A double, because the nanoseconds of many long waits exceed 64 bits.
    sum_ += static_cast<double>(value);
  }
  void add(Duration duration) { add(duration.count()); }

  double sum() const { return sum_; }
  // Returns the number of calls of add(). O(buckets).
  std::uint64_t total() const {
    std::uint64_t total = 0;
    for (const std::uint64_t count : counts_) total += count;
    return total;
  }

  HistogramCounts counts() const requires BoundedScale<Scale> {
    HistogramCounts result{.bounds = Scale::kBounds, .sum = sum_, .per_unit = Scale::kPerUnit};
    std::ranges::copy(counts_, result.counts.begin());
    return result;
  }

  // Returns the smallest number that at least `share` (0 to 1) of all numbers do not exceed, as the
  // middle of its bucket. 0 if no number was added. O(buckets).
  std::int64_t at(double share) const requires(!BoundedScale<Scale>) {
    const double wanted = std::ceil(share * static_cast<double>(total()));
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      seen += counts_[bucket];
      if (seen > 0 && static_cast<double>(seen) >= wanted) return Scale::middle_of(bucket);
    }
    return 0;
  }

 private:
  // A bound belongs to the bucket below it.
  static std::size_t bucket_of(std::int64_t value) {
    if constexpr (BoundedScale<Scale>) {
      std::size_t bucket = 0;
      while (bucket < std::size(Scale::kBounds) && value > Scale::kBounds[bucket]) ++bucket;
      return bucket;
    } else {
      return Scale::bucket_of(value);
    }
  }
  static constexpr std::size_t bucket_count() {
    if constexpr (BoundedScale<Scale>) {
      return std::size(Scale::kBounds) + 1;
    } else {
      return Scale::kBuckets;
    }
  }
  using Counters =
      std::conditional_t<BoundedScale<Scale>, std::array<std::uint64_t, bucket_count()>,
                         std::vector<std::uint64_t>>;

  static Counters no_counts() {
    if constexpr (BoundedScale<Scale>) {
      return {};
    } else {
      return Counters(bucket_count());
    }
  }

  Counters counts_ = no_counts();
  double sum_ = 0;
};

// For latencies of any length, to three digits. Numbers below 2048 have a bucket each. Above that,
// each power of two is divided into 1024 buckets, so a bucket is at most 0.1 % wide. Larger numbers
// count as 2^kMaxBits - 1, negative numbers as 0.
struct LogScale {
  static constexpr unsigned kMaxBits = 44;  // nanoseconds: four hours

  static constexpr std::size_t bucket_of(std::int64_t value) {
    const auto number = static_cast<std::uint64_t>(std::clamp<std::int64_t>(value, 0, kLargest));
    // With shift s > 0, the shifted number is kSteps to 2 * kSteps - 1: the buckets are contiguous.
    const unsigned shift = shift_of(number);
    return static_cast<std::size_t>(shift * kSteps + (number >> shift));
  }
  static constexpr std::int64_t middle_of(std::size_t bucket) {
    if (bucket < 2 * kSteps) return static_cast<std::int64_t>(bucket);
    const std::uint64_t shift = bucket / kSteps - 1;
    return static_cast<std::int64_t>(((bucket - shift * kSteps) << shift) +
                                     (std::uint64_t{1} << shift) / 2);
  }

 private:
  static constexpr unsigned kStepBits = 10;  // a power of two has 2^kStepBits buckets
  static constexpr std::uint64_t kSteps = 1U << kStepBits;
  static constexpr std::int64_t kLargest = (std::int64_t{1} << kMaxBits) - 1;

  // Returns how many low bits of `number` do not affect its bucket.
  static constexpr unsigned shift_of(std::uint64_t number) {
    const auto bits = static_cast<unsigned>(std::bit_width(number));
    return bits > kStepBits + 1 ? bits - kStepBits - 1 : 0;
  }

 public:
  static constexpr std::size_t kBuckets = 35 * kSteps;
  static_assert(kMaxBits - kStepBits + 1 == 35);
};

// For durations of up to a second, reported in seconds.
struct ShortTimeScale {
  static constexpr std::array<std::int64_t, 10> kBounds = {
      100'000,   200'000,    500'000,    1'000'000,   2'000'000,
      5'000'000, 10'000'000, 50'000'000, 200'000'000, 1'000'000'000};
  static constexpr double kPerUnit = 1e9;
};

// For counts.
struct CountScale {
  static constexpr std::array<std::int64_t, 10> kBounds = {1,  2,   5,   10,  20,
                                                           50, 100, 200, 500, 1000};
  static constexpr double kPerUnit = 1;
};

using ShortTimes = Histogram<ShortTimeScale>;
using Counts = Histogram<CountScale>;
using Percentiles = Histogram<LogScale>;

}  // namespace tubed
