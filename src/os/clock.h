// The machine's clock, read in one place. Everybody else is told the time.
#pragma once

#include "base/time.h"

namespace tubed::os {

// CLOCK_MONOTONIC: a stepped wall clock does not move it.
Time monotonic_now();

// What has passed since 1970, as the wall clock has it.
Duration wall_time();

// What wall_time() is ahead of monotonic_now(). It changes when the wall clock is stepped, and when
// the machine was suspended: monotonic time does not pass meanwhile.
Duration wall_offset();

}  // namespace tubed::os
