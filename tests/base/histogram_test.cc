#include "base/histogram.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/share.h"

using namespace tubed;
using namespace std::chrono_literals;

namespace {

std::uint64_t count_at(const HistogramView& view, std::size_t place) {
  return view.counts[place];
}

}  // namespace

TEST_CASE(
    "a number equal to a bound is in the bucket below it, and a last bucket counts numbers above "
    "all bounds") {
  Counts sizes;
  for (const std::int64_t size : {0, 1, 2, 3, 1000, 1001}) sizes.add(size);
  const HistogramView view = sizes.view();
  CHECK(view.counts.size() == view.bounds.size() + 1);
  CHECK(count_at(view, 0) == 2);
  CHECK(count_at(view, 1) == 1);
  CHECK(count_at(view, 2) == 1);
  CHECK(count_at(view, 9) == 1);
  CHECK(count_at(view, 10) == 1);
  CHECK(view.total() == 6);
  CHECK(view.sum == 2007);
}

TEST_CASE("times are reported in seconds, and their sum is more than 64 bits of nanoseconds") {
  LongTimes times;
  times.add(1ms);
  times.add(1ms + 1ns);
  CHECK(count_at(times.view(), 0) == 1);
  CHECK(count_at(times.view(), 1) == 1);
  CHECK(times.view().sum / times.view().per_unit == doctest::Approx(0.002));
  for (int i = 0; i < 400; ++i) times.add(std::chrono::hours(24 * 365));
  CHECK(count_at(times.view(), 8) == 400);
  CHECK(times.view().sum / times.view().per_unit == doctest::Approx(400.0 * 86'400 * 365));
}

TEST_CASE("the bounds of each scale ascend") {
  for (const HistogramView& view : {LongTimes().view(), ShortTimes().view(), Counts().view()}) {
    for (std::size_t i = 1; i < view.bounds.size(); ++i) CHECK(view.bounds[i - 1] < view.bounds[i]);
  }
}

TEST_CASE("at() interpolates between two listed bounds") {
  Counts sizes;
  CHECK(sizes.view().at(0.5) == 0);
  CHECK(HistogramView().at(0.5) == 0);
  for (int i = 0; i < 10; ++i) sizes.add(15);
  CHECK(sizes.view().at(0) == 10);
  CHECK(sizes.view().at(0.5) == 15);
  CHECK(sizes.view().at(1) == 20);
  for (int i = 0; i < 10; ++i) sizes.add(1);
  CHECK(sizes.view().at(0.25) == 0);
  CHECK(sizes.view().at(0.5) == 1);
  CHECK(sizes.view().at(0.75) == 15);
  for (int i = 0; i < 20; ++i) sizes.add(5000);
  CHECK(sizes.view().at(0.5) == 20);
  CHECK(sizes.view().at(0.51) == 1000);
  CHECK(sizes.view().at(1) == 1000);
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
