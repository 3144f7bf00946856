// ClusterClock: the time of the cluster, which the queue lives by in cluster mode.
//
// It is in nanoseconds since 1970 and never goes back along the log. A leader goes on from the time
// of the leader before it, which each of that leader's frames has carried, and follows its own
// monotonic clock from there on: wall clocks that differ or are stepped move no deadline. Only a
// leader that has heard of no other since its start, as after the start of the whole cluster, takes
// its wall clock, or the newest entry's time if that is later.
#pragma once

#include <algorithm>
#include <optional>

#include "base/time.h"

namespace tubed::cluster {

class ClusterClock {
 public:
  // A frame from the leader has arrived at the monotonic time `now`; `time`: when it was sent.
  void observe(Time now, Time time) {
    offset_ = std::max(offset_.value_or(Duration::min()), time - now);
  }
  // This node leads from the monotonic time `now` on. `wall`: the wall clock; `newest`: the time of
  // the newest entry.
  void lead(Time now, Time wall, Time newest) {
    offset_ = std::max(offset_.value_or(wall - now), newest - now);
  }

  // False: neither has happened.
  bool is_set() const { return offset_.has_value(); }
  // Precondition, also of the next: is_set().
  Time at(Time now) const { return now + *offset_; }
  // The monotonic time of a time of the cluster.
  Time local(Time time) const { return time == kNever ? kNever : time - *offset_; }

 private:
  std::optional<Duration> offset_;
};

}  // namespace tubed::cluster
