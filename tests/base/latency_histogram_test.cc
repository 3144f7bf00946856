#include "base/latency_histogram.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include <doctest/doctest.h>

using namespace tubed;
using namespace std::chrono_literals;

namespace {

constexpr double kMostError = 0.05;

double error_of(std::int64_t nanoseconds) {
  LatencyHistogram times;
  times.add(Duration(nanoseconds));
  const auto exact = static_cast<double>(nanoseconds);
  return std::abs(static_cast<double>(times.at(0.5).count()) - exact) / exact;
}

}  // namespace

TEST_CASE("an empty latency histogram has no percentiles") {
  const LatencyHistogram times;
  CHECK(times.total() == 0);
  CHECK(times.sum_seconds() == 0);
  CHECK(times.at(0.5) == Duration::zero());
  CHECK(times.counts().total() == 0);
}

TEST_CASE("a percentile is at most 5 % off from a microsecond to 115 days") {
  for (std::int64_t power = 1'000; power < 10'000'000'000'000'000; power *= 10) {
    for (std::int64_t tenths = 10; tenths < 100; ++tenths) {
      const std::int64_t time = tenths * (power / 10);
      CAPTURE(time);
      CHECK(error_of(time + 1) <= kMostError);
      CHECK(error_of(time + power / 20) <= kMostError);
      if (time > 1'000) CHECK(error_of(time) <= kMostError);
    }
  }
}

TEST_CASE("shorter times share a bucket, and a longer time counts as the longest") {
  LatencyHistogram times;
  for (const std::int64_t time : {-5, 0, 1, 1000}) times.add(Duration(time));
  CHECK(times.at(0.99) == 500ns);
  CHECK(times.sum_seconds() == doctest::Approx(1.001e-6));
  times.add(Duration(INT64_MAX));
  CHECK(times.at(0.8) == 500ns);
  CHECK(times.at(1) > 24h * 111);
  CHECK(times.total() == 5);
}

TEST_CASE("percentiles of a latency histogram are near those of the sorted times") {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> distribution(16, 3);
  LatencyHistogram histogram;
  std::vector<double> times;
  for (int i = 0; i < 20'000; ++i) {
    times.push_back(std::max(1001.0, std::floor(distribution(random))));
    histogram.add(Duration(static_cast<std::int64_t>(times.back())));
  }
  std::ranges::sort(times);
  for (const double share : {0.001, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0}) {
    CAPTURE(share);
    const double exact = times[static_cast<std::size_t>(std::ceil(share * 20'000)) - 1];
    CHECK(static_cast<double>(histogram.at(share).count()) ==
          doctest::Approx(exact).epsilon(kMostError));
  }
  CHECK(histogram.at(0) == histogram.at(1.0 / 20'000));
}

TEST_CASE("counts between the bounds are exact, and a bound belongs to what is below it") {
  LatencyHistogram histogram;
  std::vector<std::int64_t> times;
  for (const std::int64_t bound : LatencyHistogram::kBounds) {
    for (const std::int64_t time : {bound - 1, bound, bound + 1}) times.push_back(time);
  }
  std::mt19937_64 random(8);
  for (int i = 0; i < 2000; ++i) {
    const int bits = static_cast<int>(random() % 63);
    times.push_back(static_cast<std::int64_t>(random() >> (63 - bits) & INT64_MAX));
  }
  for (const std::int64_t time : times) histogram.add(Duration(time));
  const HistogramCounts counted = histogram.counts();
  REQUIRE(std::ranges::equal(counted.bounds, LatencyHistogram::kBounds));
  CHECK(std::ranges::adjacent_find(counted.bounds, std::greater_equal()) == counted.bounds.end());
  CHECK(counted.total() == times.size());
  std::uint64_t up_to = 0;
  for (std::size_t i = 0; i < counted.bounds.size(); ++i) {
    up_to += counted.counts[i];
    CHECK(up_to == static_cast<std::uint64_t>(std::ranges::count_if(
                       times, [&](std::int64_t time) { return time <= counted.bounds[i]; })));
  }
}

TEST_CASE("the sum of times exceeds 64 bits of nanoseconds") {
  LatencyHistogram times;
  for (int i = 0; i < 400; ++i) times.add(24h * 365);
  CHECK(times.sum_seconds() == doctest::Approx(400.0 * 86'400 * 365));
}
