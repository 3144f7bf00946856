// The part of the simulated libuv that the world uses.
#pragma once

#include <cstdint>
#include <functional>

namespace tubed::simulation {

// Sends the process a signal: the loop calls its handlers. No effect without a handler.
void raise_signal(int number);
// An event has called the process, as the loop does when work of the thread pool is done: ends the
// poll phase.
void note_call();
// Returns the number of iterations of all loops so far.
std::uint64_t ticks();
// Calls `called` at the end of each iteration of the process's loop.
void on_tick(std::function<void()> called);
// Ends the process at this moment: uv_run() returns at once and calls nothing until the next loop
// is made.
void end_loop();

}  // namespace tubed::simulation
