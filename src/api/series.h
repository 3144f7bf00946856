// Series: numbers of one thing over the last day, with one point for each minute in which anything
// is known about it.
//
// A point has gauges, which are those at the end of its minute, and counts, which are sums over the
// part of the minute that is known. Points are in the order of time; a minute without a point is a
// gap. At most kMinutes points are kept, the newest.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/time.h"

namespace tubed::api {

// `Number`: the type of the numbers that are kept; a greater number is kept as its greatest.
template <class Number, std::size_t kGauges, std::size_t kCounts>
class Series {
 public:
  static constexpr std::size_t kMinutes = 24 * 60;
  static constexpr std::size_t kNumbers = kGauges + kCounts;
  using Gauges = std::array<std::uint64_t, kGauges>;
  using Counts = std::array<std::uint64_t, kCounts>;

  struct Point {
    std::uint32_t minute = 0;        // since 1970
    std::uint32_t milliseconds = 0;  // of the minute: how much of it is known
    std::array<Number, kNumbers> numbers{};

    friend bool operator==(const Point&, const Point&) = default;
  };

  // Adds what was counted in the last `passed` to the point of the minute, or to the newest point
  // if the minute is earlier. O(1).
  void add(std::uint32_t minute, std::chrono::milliseconds passed, const Gauges& gauges,
           const Counts& counts) {
    if (size() == 0 || newest().minute < minute) append({.minute = minute});
    Point& point = points_[place(size() - 1)];
    point.milliseconds = sum<std::uint32_t>(point.milliseconds, passed.count());
    for (std::size_t i = 0; i < kGauges; ++i) point.numbers[i] = sum<Number>(0, gauges[i]);
    for (std::size_t i = 0; i < kCounts; ++i) {
      Number& number = point.numbers[kGauges + i];
      number = sum<Number>(number, counts[i]);
    }
  }
  // Precondition: no point is of this minute or a later one. O(1).
  void append(const Point& point) {
    if (points_.size() < kMinutes) {
      if (points_.size() == points_.capacity())
        points_.reserve(std::clamp<std::size_t>(2 * points_.size(), 16, kMinutes));
      points_.push_back(point);
      return;
    }
    points_[oldest_] = point;
    oldest_ = (oldest_ + 1) % kMinutes;
  }

  std::size_t size() const { return points_.size(); }
  std::size_t memory_bytes() const { return points_.capacity() * sizeof(Point); }
  // Precondition: not empty.
  const Point& newest() const { return points_[place(size() - 1)]; }
  // Calls visit(const Point&) for each point of `since` or a later minute, the oldest first.
  // O(points).
  template <class Visit>
  void visit(std::uint32_t since, Visit visit) const {
    for (std::size_t i = 0; i < size(); ++i) {
      const Point& point = points_[place(i)];
      if (point.minute >= since) visit(point);
    }
  }

  // Moves the points of `since` and later by this number of minutes, as the clock was wrong when
  // they were added. Drops the points before them that are not earlier now. O(points).
  void shift(std::uint32_t since, std::int64_t minutes) {
    std::rotate(points_.begin(), points_.begin() + static_cast<std::ptrdiff_t>(oldest_),
                points_.end());
    oldest_ = 0;
    const auto moved = std::ranges::lower_bound(points_, since, {}, &Point::minute);
    if (moved == points_.end()) return;
    for (Point& point : std::span(moved, points_.end()))
      point.minute = static_cast<std::uint32_t>(point.minute + minutes);
    points_.erase(
        std::ranges::lower_bound(points_.begin(), moved, moved->minute, {}, &Point::minute), moved);
  }

 private:
  template <class Sum>
  static Sum sum(Sum number, std::uint64_t more) {
    const std::uint64_t room = std::numeric_limits<Sum>::max() - number;
    return static_cast<Sum>(number + std::min(room, more));
  }
  template <class Sum>
  static Sum sum(Sum number, std::chrono::milliseconds::rep more) {
    return sum<Sum>(number, static_cast<std::uint64_t>(std::max<std::int64_t>(more, 0)));
  }
  std::size_t place(std::size_t i) const { return (oldest_ + i) % points_.size(); }

  std::vector<Point> points_;  // a ring
  std::size_t oldest_ = 0;
};

}  // namespace tubed::api
