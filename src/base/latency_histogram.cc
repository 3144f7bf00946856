#include "base/latency_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tubed {

namespace {

constexpr std::size_t kShortestPower = 3;  // 10^3 ns
constexpr std::size_t kTens = 17;

constexpr std::array<std::int64_t, kTens> powers_of_ten() {
  std::array<std::int64_t, kTens> powers{};
  std::int64_t power = 1;
  for (std::int64_t& entry : powers) {
    entry = power;
    power *= 10;
  }
  return powers;
}

constexpr auto kTen = powers_of_ten();
constexpr std::int64_t kLongest = kTen[kTens - 1];

// Where a bucket begins, in tenths of its power of ten: 10 to 99; 100 for the end of the last.
constexpr std::int64_t begin_of(std::size_t step) {
  const auto number = static_cast<std::int64_t>(step);
  if (number < 10) return 10 + number;
  if (number < 25) return 20 + 2 * (number - 10);
  return 50 + 5 * (number - 25);
}

// The bucket of each pair of leading digits.
constexpr std::array<std::uint8_t, 100> buckets_of_digits() {
  std::array<std::uint8_t, 100> buckets{};
  std::uint8_t step = 0;
  for (std::size_t digits = 10; digits < 100; ++digits) {
    if (static_cast<std::int64_t>(digits) >= begin_of(step + 1U)) ++step;
    buckets[digits] = step;
  }
  return buckets;
}

constexpr auto kBucketOfDigits = buckets_of_digits();

struct Place {
  std::size_t power;  // of powers_
  std::size_t step;
};

// Precondition: kTen[kShortestPower] <= nanoseconds < kLongest.
inline Place place_of(std::int64_t nanoseconds) {
  // 1233 / 4096 is about the logarithm of 2: the quotient is the exponent or one more.
  const auto bits = static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(nanoseconds)));
  std::size_t exponent = bits * 1233 >> 12;
  if (nanoseconds < kTen[exponent]) --exponent;
  const auto digits = static_cast<std::size_t>(nanoseconds / kTen[exponent - 1]);
  return {exponent - kShortestPower, kBucketOfDigits[digits]};
}

}  // namespace

void LatencyHistogram::add_longer(std::int64_t nanoseconds) {
  const Place place =
      place_of(std::min(nanoseconds, kLongest) - 1);  // the end of a bucket belongs to it
  Power* power = powers_[place.power].get();
  if (power == nullptr) [[unlikely]] {
    power = make_power(place.power);
  }
  ++power->total;
  ++power->counts[place.step];
}

LatencyHistogram::Power* LatencyHistogram::make_power(std::size_t power) {
  powers_[power] = std::make_unique<Power>();
  return powers_[power].get();
}

Duration LatencyHistogram::at(double share) const {
  if (total_ == 0) return {};
  const auto rank = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(total_)));
  std::uint64_t left = std::clamp<std::uint64_t>(rank, 1, total_);
  if (left <= shortest_) return Duration(kShortest / 2);
  left -= shortest_;
  std::size_t index = 0;
  while (!powers_[index] || left > powers_[index]->total) {
    if (powers_[index]) left -= powers_[index]->total;
    ++index;
  }
  std::size_t step = 0;
  for (; left > powers_[index]->counts[step]; ++step) left -= powers_[index]->counts[step];
  return Duration((begin_of(step) + begin_of(step + 1)) * kTen[kShortestPower + index - 1] / 2);
}

HistogramCounts LatencyHistogram::counts() const {
  HistogramCounts result{.bounds = kBounds, .sum = sum_, .per_unit = 1e9};
  result.counts[0] = shortest_;
  std::size_t bound = 0;
  for (std::size_t index = 0; index < kPowers; ++index) {
    if (!powers_[index]) continue;
    const std::int64_t tenth = kTen[kShortestPower + index - 1];
    // True: the bucket that begins at `begin` tenths is above the bound.
    const auto above = [&](std::int64_t begin) {
      return bound < kBounds.size() && begin * tenth >= kBounds[bound];
    };
    while (above(begin_of(0))) ++bound;
    if (bound == kBounds.size() || kBounds[bound] >= 100 * tenth) {
      result.counts[bound] += powers_[index]->total;
      continue;
    }
    for (std::size_t step = 0; step < kSteps; ++step) {
      while (above(begin_of(step))) ++bound;
      result.counts[bound] += powers_[index]->counts[step];
    }
  }
  return result;
}

}  // namespace tubed
