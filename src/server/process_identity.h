// The ProcessIdentity and the ProcessProbe of this process, which stats and the metrics report.
#pragma once

#include <cstdint>
#include <string>

#include "stats/process.h"

namespace tubed::server {

// Returns 16 hexadecimal digits. The first is a letter, because some clients read a text of digits,
// or a text like 12e4567890123456, as a number.
std::string instance_id(std::uint64_t random);
// Returns the identity of a server that starts now, with a new random instance id.
stats::ProcessIdentity identify();
// The same with a fixed instance id and wall clock: a test suite gets the same statistics in each
// run. `begin`: the time of the queue.
stats::ProcessIdentity identify_for_tests(Time begin);
// The wall clock in test mode minus the monotonic clock at `started`: it begins at
// 2000-01-01T00:00:00Z.
Duration test_wall_offset(Time started);

// Functions that read the resource usage of this process. Each call makes a few system calls.
stats::ProcessProbe this_process();
// The same, but no processor time is used.
stats::ProcessProbe this_process_for_tests();

}  // namespace tubed::server
