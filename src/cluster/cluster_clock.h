// ClusterClock: the time of the cluster, on which the queue runs in cluster mode.
//
// It is in nanoseconds since 1970 and never goes back along the log. A leader starts from the
// previous leader's time, which each of that leader's frames carried, and then follows its own
// monotonic clock alone: wall clocks that differ or are stepped do not move deadlines. A node that
// was started since gets this time with the votes of those that know it (kLevelOfClocks). Only if
// no voter that has answered knows it, as after the start of the whole cluster, does a leader take
// its wall clock, or the time of the newest entry if that is later.
#pragma once

#include <algorithm>
#include <optional>

#include "base/time.h"

namespace tubed::cluster {

class ClusterClock {
 public:
  // This node does not lead. A frame of a node that knows the time has arrived at the monotonic
  // time `now`, sent at the cluster time `time`.
  void observe(Time now, Time time) {
    offset_ = std::max(offset_.value_or(Duration::min()), time - now);
  }
  // This node leads from the monotonic time `now`. `wall` is the wall clock; `newest` is the time
  // of the newest entry.
  void lead(Time now, Time wall, Time newest) {
    offset_ = std::max(offset_.value_or(wall - now), newest - now);
  }

  // False if neither function has been called.
  bool is_set() const { return offset_.has_value(); }
  // Returns the time of the cluster at `now`. Precondition of at() and local(): is_set().
  Time at(Time now) const { return now + *offset_; }
  // Converts a time of the cluster to monotonic time.
  Time local(Time time) const { return time == kNever ? kNever : time - *offset_; }

 private:
  std::optional<Duration> offset_;
};

}  // namespace tubed::cluster
