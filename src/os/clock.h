// The clocks of the machine. No other code reads them: the engine, the journal and the commands get
// the time as an argument.
#pragma once

#include "base/time.h"

namespace tubed::os {

// Reads CLOCK_MONOTONIC: never goes back, ignores steps of the wall clock, and stops while the
// machine is suspended.
Time monotonic_now();

// Reads CLOCK_BOOTTIME: like monotonic_now(), but includes the time for which the machine was
// suspended.
Time boot_time_now();

// Returns the time since 1970. It may be stepped in either direction.
Duration wall_time();

// Returns wall_time() minus monotonic_now(). Changes when the wall clock is stepped and when the
// machine resumes from a suspension.
Duration wall_offset();

}  // namespace tubed::os
