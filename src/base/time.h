// Time in the pure folders: a number that the caller passes in. They read no clock.
//
// Time is monotonic, in nanoseconds. It may be negative: a job may be older than the clock's zero.
#pragma once

#include <chrono>
#include <cstdint>

namespace tubed {

// The clock type of Time. It has no now(): the caller passes the time in.
struct MonotonicTimeline {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
};

using Duration = std::chrono::nanoseconds;
using Time = std::chrono::time_point<MonotonicTimeline, Duration>;

// "No deadline": later than any time that occurs.
inline constexpr Time kNever = Time::max();

// Returns the whole seconds in `d`, rounded down, never negative.
constexpr std::int64_t whole_seconds(Duration d) {
  return d.count() <= 0 ? 0 : std::chrono::duration_cast<std::chrono::seconds>(d).count();
}

}  // namespace tubed
