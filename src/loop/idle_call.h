// IdleCall: calls a function in the next iteration of the loop, which does not wait for events
// then. A timer without a delay would not do: if it is armed again when it expires, it may expire
// again in the same iteration.
#pragma once

#include <functional>

#include "loop/loop.h"

namespace tubed::loop {

class IdleCall {
 public:
  // `loop` outlives it. `call` may arm it again, for the iteration after.
  IdleCall(Loop& loop, std::function<void()> call);

  // Calls the function once. Does nothing if it is armed. O(1), as is disarm().
  void arm();
  void disarm();

 private:
  std::function<void()> call_;
  Handle<uv_idle_t> handle_;
};

}  // namespace tubed::loop
