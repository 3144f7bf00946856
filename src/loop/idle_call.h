// IdleCall: calls a function in the next iteration of the loop, which then does not wait for
// events. A timer without a delay is no substitute: if armed again when it expires, it may expire
// again in the same iteration.
#pragma once

#include <functional>

#include "loop/loop.h"

namespace tubed::loop {

class IdleCall {
 public:
  // `loop` outlives it. `call` may arm it again, for the following iteration.
  IdleCall(Loop& loop, std::function<void()> call);

  // Schedules one call. No effect if it is armed already. O(1), like disarm().
  void arm();
  void disarm();

 private:
  std::function<void()> call_;
  Handle<uv_idle_t> handle_;
};

}  // namespace tubed::loop
