// Wakeup: lets another thread make the loop call a function.
#pragma once

#include <functional>

#include "loop/loop.h"

namespace tubed::loop {

class Wakeup {
 public:
  // Calls `woken` in the loop at least once after each wake(); several calls of wake() may cause a
  // single call. `woken` may destroy this object. `loop` outlives the object.
  Wakeup(Loop& loop, std::function<void()> woken);

  // Callable by any thread while this object exists.
  void wake();

 private:
  std::function<void()> woken_;
  Handle<uv_async_t> handle_;
};

}  // namespace tubed::loop
