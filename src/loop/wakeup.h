// Wakeup: another thread makes the loop call a function.
#pragma once

#include <functional>

#include "loop/loop.h"

namespace tubed::loop {

class Wakeup {
 public:
  // `woken` is called in the loop, at least once after each wake(); several calls of wake() may
  // cause one. It may destroy this object. `loop` outlives it.
  Wakeup(Loop& loop, std::function<void()> woken);

  // For any thread, as long as this object exists.
  void wake();

 private:
  std::function<void()> woken_;
  Handle<uv_async_t> handle_;
};

}  // namespace tubed::loop
