// Histogram: how often which number was counted, in bounded memory.
//
// Numbers below 2048 have a bucket each; above, each power of two is cut into 1024 buckets, so that
// a bucket is at most 0.1 % wide. Numbers from 2^kMaxBits on count as the largest.
#pragma once

#include <cstdint>
#include <vector>

namespace tubed::tubectl::bench {

class Histogram {
 public:
  static constexpr unsigned kMaxBits = 44;  // nanoseconds: four hours

  Histogram();

  void add(std::uint64_t number);

  std::uint64_t count() const { return count_; }
  double mean() const;                        // exact; 0 when there is none
  std::uint64_t max() const { return max_; }  // exact
  // The smallest number that at least `share` (0 to 1) of all do not exceed: the middle of its
  // bucket. 0 when there is none.
  std::uint64_t at(double share) const;

 private:
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  double sum_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace tubed::tubectl::bench
