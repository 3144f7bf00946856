// The threads of libuv's pool, which run the operations on files.
#pragma once

#include "base/result.h"

namespace tubed::loop {

// Starts the pool. Otherwise libuv does so at the first operation, and aborts where it cannot: with
// seccomp filters that do not know clone3(2), at a limit of processes, without memory for stacks.
// The error is one line. If threads can no longer be made once it was seen that they can, the
// process prints that line and exits with os::kExitNoResources. To be called by one thread.
Result<void> start_thread_pool();

}  // namespace tubed::loop
