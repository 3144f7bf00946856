// Conditions: actions of an operator that change what the model expects.
#pragma once

#include <optional>
#include <vector>

#include "base/time.h"

namespace tubed::simulation {

// The process had no processor time for `length`, until `until`.
struct Stall {
  Time until;
  Duration length;
};

struct Conditions {
  Time gives_since = {};  // the server gives out jobs since; kNever: a drain refuses reserves
  std::optional<Time> clock_stepped = {};  // last step of the wall clock
  bool may_refuse_puts = false;            // a limit may be low
  bool is_stopping = false;                // no new wait begins, and current waits end
  std::vector<Stall> stalls = {};          // the earliest first

  // Returns the end of the last stall; the first time if there was none.
  Time stalled_until() const { return stalls.empty() ? Time{} : stalls.back().until; }

  // Returns the latest time since which the process has had `duration` of processor time.
  Time running_for(Duration duration, Time now) const {
    Time since = now - duration;
    for (auto stall = stalls.rbegin(); stall != stalls.rend() && stall->until > since; ++stall)
      since -= stall->length;
    return since;
  }
};

}  // namespace tubed::simulation
