// Conditions: actions of an operator that change what the model expects.
#pragma once

#include <optional>

#include "base/time.h"

namespace tubed::simulation {

struct Conditions {
  Time gives_since = {};    // the server gives out jobs since; kNever: a drain refuses reserves
  Time stalled_until = {};  // the process had no processor time before then
  std::optional<Time> clock_stepped = {};  // last step of the wall clock
  bool may_refuse_puts = false;            // a limit may be low
  bool is_stopping = false;                // no new wait begins, and current waits end
};

}  // namespace tubed::simulation
