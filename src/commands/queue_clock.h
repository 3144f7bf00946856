// QueueClock: the time of the queue, where it is not that of the tick: in test mode it is moved by
// command, and in a cluster it is that of the leader.
//
// Outside of both, a server has none: the pointer in Service is null.
#pragma once

#include <optional>

#include "base/time.h"
#include "engine/deadline_index.h"

namespace tubed::commands {

class QueueClock {
 public:
  virtual ~QueueClock() = default;

  // A tick has begun at `tick`, by the monotonic clock. Returns the time of the queue. Nothing: the
  // queue does nothing by itself, because it follows that of another node.
  virtual std::optional<Time> tick_began(Time tick) = 0;
  // When the next tick is needed, by the monotonic clock.
  virtual engine::Deadlines next_deadlines() const = 0;
};

}  // namespace tubed::commands
