#include "base/histogram.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/share.h"

using namespace tubed;
using namespace std::chrono_literals;

TEST_CASE(
    "a number equal to a bound is in the bucket below it, and a last bucket counts numbers above "
    "all bounds") {
  Counts sizes;
  for (const std::int64_t size : {0, 1, 2, 3, 1000, 1001}) sizes.add(size);
  const HistogramCounts counted = sizes.counts();
  CHECK(counted.bounds.size() == 10);
  CHECK(counted.counts[0] == 2);
  CHECK(counted.counts[1] == 1);
  CHECK(counted.counts[2] == 1);
  CHECK(counted.counts[9] == 1);
  CHECK(counted.counts[10] == 1);
  CHECK(counted.total() == 6);
  CHECK(counted.sum == 2007);
}

TEST_CASE("the bounds of each scale ascend") {
  for (const HistogramCounts& counted : {ShortTimes().counts(), Counts().counts()}) {
    CHECK(std::ranges::adjacent_find(counted.bounds, std::greater_equal()) == counted.bounds.end());
  }
}

TEST_CASE("percentiles: 0 for an empty histogram") {
  const Percentiles histogram;
  CHECK(histogram.total() == 0);
  CHECK(histogram.sum() == 0);
  CHECK(histogram.at(0.5) == 0);
}

TEST_CASE("percentiles: small numbers are exact") {
  Percentiles histogram;
  for (std::int64_t number = 2047; number > 0; --number) histogram.add(number);
  CHECK(histogram.total() == 2047);
  CHECK(histogram.sum() == 2047 * 1024);
  CHECK(histogram.at(0) == 1);
  CHECK(histogram.at(0.5) == 1024);
  CHECK(histogram.at(0.99) == 2027);
  CHECK(histogram.at(1) == 2047);
}

TEST_CASE("percentiles: numbers of any size keep three digits") {
  for (unsigned bits = 1; bits < LogScale::kMaxBits; ++bits) {
    const std::int64_t power = std::int64_t{1} << bits;
    for (const std::int64_t number : {power - 1, power, power + 1, power + power / 3}) {
      CAPTURE(number);
      Percentiles histogram;
      histogram.add(number);
      const auto error = std::abs(static_cast<double>(histogram.at(0.5) - number));
      CHECK(error <= static_cast<double>(number) / 1000);
    }
  }
}

TEST_CASE("percentiles: the buckets are contiguous") {
  std::size_t before = LogScale::bucket_of(0);
  for (std::int64_t number = 1; number < (1 << 20); number += kOneIn) {
    const std::size_t bucket = LogScale::bucket_of(number);
    REQUIRE(bucket >= before);
    REQUIRE(bucket - before <= kOneIn);
    before = bucket;
  }
  CHECK(LogScale::bucket_of(INT64_MAX) == LogScale::kBuckets - 1);
}

TEST_CASE("percentiles: as in the sorted numbers, to three digits") {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> distribution(12, 2);
  Percentiles histogram;
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < 20'000; ++i) {
    numbers.push_back(static_cast<std::int64_t>(distribution(random)));
    histogram.add(numbers.back());
  }
  std::ranges::sort(numbers);
  for (const double share : {0.001, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * 20'000)) - 1;
    const auto wanted = static_cast<double>(numbers[rank]);
    CAPTURE(share);
    CHECK(static_cast<double>(histogram.at(share)) == doctest::Approx(wanted).epsilon(0.001));
  }
}

TEST_CASE("percentiles: too large numbers count as the largest, negative numbers as 0") {
  Percentiles histogram;
  histogram.add(INT64_MAX);
  CHECK(histogram.at(0.5) >= (std::int64_t{1} << LogScale::kMaxBits) / 1001 * 1000);
  histogram.add(-1);
  CHECK(histogram.at(0) == 0);
}
