// The threads of libuv's pool, which run the operations on files.
#pragma once

#include "base/result.h"

namespace tubed::loop {

// Starts the pool. Otherwise libuv starts it at the first operation, and aborts if it cannot: with
// seccomp filters that do not know clone3(2), at a limit on processes, or without memory for
// stacks. The error is one line. If threads could be created at first but no longer when the pool
// starts, the process prints that line and exits with os::kExitNoResources. To be called by one
// thread.
Result<void> start_thread_pool();

}  // namespace tubed::loop
