// Identity: the facts about this process and its machine that stats and metrics show.
#pragma once

#include "stats/process.h"

namespace tubed::server {

// The identity of a server that starts now, with a new random instance id.
stats::Identity identify();

// Functions that read the resource usage of this process. Each call makes a few system calls.
stats::ProcessProbe this_process();

}  // namespace tubed::server
