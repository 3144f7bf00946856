// The machine's clock, read in one place. Everybody else is told the time.
#pragma once

#include "base/time.h"

namespace tubed::platform {

// CLOCK_MONOTONIC: a stepped wall clock does not move it.
Time monotonic_now();

// What has passed since 1970, as the wall clock has it.
Duration wall_time();

}  // namespace tubed::platform
