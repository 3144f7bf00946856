// Timer: one uv_timer that rings once.
#pragma once

#include <functional>

#include "base/time.h"
#include "loop/loop.h"

namespace tubed::loop {

class Timer {
 public:
  Timer(Loop& loop, std::function<void()> ring);

  // Rings once, `delay` from now, rounded up to the loop's milliseconds; it may ring up to one
  // turn of the loop early. Arming again replaces. Not in the past: a negative delay is zero.
  void arm(Duration delay);
  void disarm();

 private:
  std::function<void()> ring_;
  Handle<uv_timer_t> handle_;
};

}  // namespace tubed::loop
