// Identity: what stats and metrics say of this process and its machine.
#pragma once

#include "stats/process.h"

namespace tubed::server {

// Of a server that starts now, with a random id for this run.
stats::Identity identify();

// What the operating system is asked for when stats or metrics are wanted.
stats::ProcessProbe this_process();

}  // namespace tubed::server
