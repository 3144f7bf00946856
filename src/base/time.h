// Time as the pure folders know it: a number handed in from outside, never read here.
//
// Time is monotonic and in nanoseconds. It may be negative: a job that is older than the process
// was created before the clock's zero.
#pragma once

#include <chrono>
#include <cstdint>

namespace tubed {

// Names a time line; it has no now() on purpose. Who needs the time is told it.
struct MonotonicTimeline {
  using rep = std::int64_t;
  using period = std::nano;
  using duration = std::chrono::nanoseconds;
};

using Duration = std::chrono::nanoseconds;
using Time = std::chrono::time_point<MonotonicTimeline, Duration>;

// Later than anything that happens: "no deadline".
inline constexpr Time kNever = Time::max();

// Whole seconds in `d`, rounded down, never negative.
constexpr std::int64_t whole_seconds(Duration d) {
  return d.count() <= 0 ? 0 : std::chrono::duration_cast<std::chrono::seconds>(d).count();
}

}  // namespace tubed
