// The part of the simulated libuv that the world acts on.
#pragma once

#include <cstdint>
#include <functional>

namespace tubed::simulation {

// The process gets the signal: the loop calls its handlers. Nothing happens without a handler.
void raise_signal(int number);
// An event has called the process, as the loop calls it when work of the thread pool is done: the
// poll phase ends.
void note_call();
// The number of iterations of all loops so far.
std::uint64_t ticks();
// From now on `called` is called at the end of each iteration of the loop of the process.
void on_tick(std::function<void()> called);
// The process ends at this moment: uv_run() returns at once, and calls nothing until the
// next loop is made.
void end_loop();

}  // namespace tubed::simulation
