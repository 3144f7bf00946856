// Conditions: the actions of an operator that change the expectations of the model.
#pragma once

#include <optional>

#include "base/time.h"

namespace tubed::simulation {

struct Conditions {
  Time gives_since = {};    // the server gives jobs since then; kNever: a drain refuses reserves
  Time stalled_until = {};  // the process had no processor time before
  std::optional<Time> clock_stepped = {};  // the last step of the wall clock
  bool may_refuse_puts = false;            // a limit may be low
  bool is_stopping = false;                // no wait begins, and those that have begun end
};

}  // namespace tubed::simulation
