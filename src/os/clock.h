// The clocks of the machine. This is the only place that reads them: the engine, the journal and
// the commands get the time as an argument.
#pragma once

#include "base/time.h"

namespace tubed::os {

// CLOCK_MONOTONIC: it never goes back, a step of the wall clock does not change it, and it does not
// advance while the machine is suspended.
Time monotonic_now();

// CLOCK_BOOTTIME: the same, but it advances while the machine is suspended.
Time boot_time_now();

// The wall clock: the time since 1970. It may be stepped in either direction.
Duration wall_time();

// wall_time() minus monotonic_now(). It changes when the wall clock is stepped and when the machine
// resumes from a suspension.
Duration wall_offset();

}  // namespace tubed::os
