// Identity: what stats and metrics say of this process and its machine.
#pragma once

#include "commands/service.h"

namespace tubed::server {

// Of a server that starts now, with a random id for this run.
commands::Identity identify();

// CPU time of the process so far.
commands::CpuTimes cpu_times();

}  // namespace tubed::server
