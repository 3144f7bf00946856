// Load: all clients of one run, on one thread.
//
// An Error: the server is not reachable or silent, or a reply is not the expected reply.
#pragma once

#include "base/result.h"
#include "tubectl/bench/plan.h"

namespace tubed::tubectl::bench {

// Returns when everything that was begun is finished: after the plan's jobs or time, or early at
// SIGINT or SIGTERM. A second such signal ends the process.
Result<Figures> run_load(const Plan& plan);

}  // namespace tubed::tubectl::bench
