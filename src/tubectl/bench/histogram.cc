#include "tubectl/bench/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tubed::tubectl::bench {
namespace {

constexpr unsigned kStepBits = 10;  // a power of two is cut into so many times two
constexpr std::uint64_t kSteps = 1U << kStepBits;

// How many low bits of `number` make no difference.
constexpr unsigned shift_of(std::uint64_t number) {
  const auto bits = static_cast<unsigned>(std::bit_width(number));
  return bits > kStepBits + 1 ? bits - kStepBits - 1 : 0;
}

// With shift s > 0 the rest is kSteps to 2 * kSteps - 1, so that the buckets follow one another.
constexpr std::size_t bucket_of(std::uint64_t number) {
  const unsigned shift = shift_of(number);
  return static_cast<std::size_t>(shift * kSteps + (number >> shift));
}

std::uint64_t middle_of(std::size_t bucket) {
  if (bucket < 2 * kSteps) return bucket;
  const std::uint64_t shift = bucket / kSteps - 1;
  return ((bucket - shift * kSteps) << shift) + (std::uint64_t{1} << shift) / 2;
}

constexpr std::uint64_t kLargest = (std::uint64_t{1} << Histogram::kMaxBits) - 1;

}  // namespace

Histogram::Histogram() : buckets_(bucket_of(kLargest) + 1) {}

void Histogram::add(std::uint64_t number) {
  ++buckets_[bucket_of(std::min(number, kLargest))];
  ++count_;
  sum_ += static_cast<double>(number);
  max_ = std::max(max_, number);
}

double Histogram::mean() const {
  return count_ == 0 ? 0 : sum_ / static_cast<double>(count_);
}

std::uint64_t Histogram::at(double share) const {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen > 0 && seen >= wanted) return std::min(middle_of(bucket), max_);
  }
  return max_;
}

}  // namespace tubed::tubectl::bench
