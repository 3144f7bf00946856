// QueueClock: the time of the queue, if it differs from the time of the tick. In test mode commands
// move it, and in a cluster it is the time of the leader.
//
// In other servers the pointer in Service is null.
#pragma once

#include <optional>

#include "base/time.h"
#include "tables/deadline_index.h"

namespace tubed::commands {

class QueueClock {
 public:
  virtual ~QueueClock() = default;

  // A tick has begun at `tick`, by the monotonic clock. Returns the time of the queue; no value if
  // the queue does nothing by itself, because it follows the queue of another node.
  virtual std::optional<Time> tick_began(Time tick) = 0;
  // When the next tick is needed, by the monotonic clock.
  virtual engine::Deadlines next_deadlines() const = 0;
};

}  // namespace tubed::commands
