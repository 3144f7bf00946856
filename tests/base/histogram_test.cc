#include "base/histogram.h"

#include <doctest/doctest.h>

using namespace tubed;
using namespace std::chrono_literals;

namespace {

std::uint64_t count_at(const HistogramView& view, std::size_t place) {
  return view.counts[place];
}

}  // namespace

TEST_CASE("a bound belongs to what is below it, and what is above all has a place of its own") {
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

TEST_CASE("times are told in seconds, and their sum is more than 64 bits of nanoseconds") {
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

TEST_CASE("bounds rise") {
  for (const HistogramView& view : {LongTimes().view(), ShortTimes().view(), Counts().view()}) {
    for (std::size_t i = 1; i < view.bounds.size(); ++i) CHECK(view.bounds[i - 1] < view.bounds[i]);
  }
}
