// Timer: one uv_timer, which expires once each time it is armed.
#pragma once

#include <functional>

#include "base/time.h"
#include "loop/loop.h"

namespace tubed::loop {

class Timer {
 public:
  // `loop` outlives the timer. `expired` may arm the timer again.
  Timer(Loop& loop, std::function<void()> expired);

  // Calls `expired` once after `delay`, or at once if it is negative. Replaces an earlier arm().
  // The delay is rounded up to milliseconds but counts from the beginning of the loop's iteration,
  // so the timer may expire earlier by the time already spent in the iteration. Delays of more than
  // a year are cut to a year. O(log n) in the armed timers of the loop, like disarm().
  void arm(Duration delay);
  void disarm();

 private:
  std::function<void()> expired_;
  Handle<uv_timer_t> handle_;
};

}  // namespace tubed::loop
