#include "tubectl/bench/histogram.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <doctest/doctest.h>

#include "tests/share.h"

namespace tubed::tubectl::bench {

TEST_CASE("an empty histogram has nothing to tell") {
  const Histogram histogram;
  CHECK(histogram.count() == 0);
  CHECK(histogram.mean() == 0);
  CHECK(histogram.max() == 0);
  CHECK(histogram.at(0.5) == 0);
}

TEST_CASE("small numbers are exact") {
  Histogram histogram;
  for (std::uint64_t number = 2047; number > 0; --number) histogram.add(number);
  CHECK(histogram.count() == 2047);
  CHECK(histogram.mean() == 1024);
  CHECK(histogram.max() == 2047);
  CHECK(histogram.at(0) == 1);
  CHECK(histogram.at(0.5) == 1024);
  CHECK(histogram.at(0.99) == 2027);
  CHECK(histogram.at(1) == 2047);
}

TEST_CASE("any number is told with three digits, whatever its size") {
  std::vector<std::uint64_t> numbers;
  for (unsigned bits = 1; bits < Histogram::kMaxBits; ++bits) {
    const std::uint64_t power = std::uint64_t{1} << bits;
    for (const std::uint64_t number : {power - 1, power, power + 1, power + power / 3}) {
      numbers.push_back(number);
    }
  }
  for (const std::uint64_t number : numbers) {
    Histogram histogram;
    histogram.add(number);
    histogram.add(std::uint64_t{1} << Histogram::kMaxBits);  // so that max does not mend it
    const double told = static_cast<double>(histogram.at(0.5));
    CAPTURE(number);
    CHECK(std::abs(told - static_cast<double>(number)) <= static_cast<double>(number) / 1000);
  }
}

TEST_CASE("buckets follow one another without a gap" * doctest::test_suite("slow")) {
  std::uint64_t before = 0;
  // Each of them: from 2048 on the least width is a 2048th.
  for (std::uint64_t number = 1; number < (1U << 20);
       number += kOneIn * std::max(1UL, number / 2048)) {
    Histogram histogram;
    histogram.add(number);
    histogram.add(UINT32_MAX);
    REQUIRE(histogram.at(0.5) >= before);
    before = histogram.at(0.5);
  }
}

TEST_CASE("percentiles are those of the sorted numbers") {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> distribution(12, 2);
  Histogram histogram;
  std::vector<std::uint64_t> numbers;
  double sum = 0;
  for (int i = 0; i < 20'000; ++i) {
    numbers.push_back(static_cast<std::uint64_t>(distribution(random)));
    histogram.add(numbers.back());
    sum += static_cast<double>(numbers.back());
  }
  std::sort(numbers.begin(), numbers.end());
  for (const double share : {0.001, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank = static_cast<std::size_t>(std::ceil(share * 20'000)) - 1;
    const auto wanted = static_cast<double>(numbers[rank]);
    CAPTURE(share);
    CHECK(static_cast<double>(histogram.at(share)) == doctest::Approx(wanted).epsilon(0.001));
  }
  CHECK(histogram.mean() == doctest::Approx(sum / 20'000));
  CHECK(histogram.max() == numbers.back());
}

TEST_CASE("what is too large counts as the largest, and its maximum is exact") {
  Histogram histogram;
  histogram.add(UINT64_MAX);
  CHECK(histogram.count() == 1);
  CHECK(histogram.max() == UINT64_MAX);
  CHECK(histogram.at(0.5) >= (std::uint64_t{1} << Histogram::kMaxBits) / 1001 * 1000);
}

}  // namespace tubed::tubectl::bench
