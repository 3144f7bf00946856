// DurableState: the facts that give the present durable state of the queue.
#pragma once

#include "engine/parts.h"
#include "facts/fact.h"

namespace tubed::engine {

class DurableState {
 public:
  // `parts` outlives it.
  explicit DurableState(const Parts& parts) : parts_(parts) {}

  // Emits a minimal list of facts that gives this state. O(n).
  void visit(Time now, FactSink& sink) const;
  // Emits the fact that gives the state of this id: the job in its resting place, followed by its
  // `Held` if it has one, the cooldown of its key, or, without either and if it was flushed,
  // `Removed`. O(1).
  void describe(Time now, JobId id, FactSink& sink) const;
  // Emits the fact that gives the state of this id again if an earlier fact may have given a time
  // for it: the `Placed` of a job that is delayed, or whose delay has ended by itself, the `Held`
  // of a job, or the `Remembered` of a cooldown. O(1).
  void describe_delay(Time now, JobId id, FactSink& sink) const;

 private:
  const Parts& parts_;
};

}  // namespace tubed::engine
