// The part of the simulated libuv that the world acts on.
#pragma once

namespace tubed::simulation {

// The process gets the signal: the loop calls its handlers. Nothing happens without a handler.
void raise_signal(int number);
// An event has called the process, as the loop calls it when work of the thread pool is done: the
// poll phase ends.
void note_call();
// The process ends at this moment: uv_run() returns at once, and calls nothing until the
// next loop is made.
void end_loop();

}  // namespace tubed::simulation
