// Load: all clients of one run, on one thread.
#pragma once

#include "base/result.h"
#include "tubectl/bench/plan.h"

namespace tubed::tubectl::bench {

// Returns when all operations in progress are complete: after the plan's jobs or time, or early
// after SIGINT or SIGTERM. A second such signal ends the process. Fails if the server is not
// reachable or is silent, or sends an unexpected reply.
Result<Figures> run_load(const Plan& plan);

}  // namespace tubed::tubectl::bench
