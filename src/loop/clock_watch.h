// ClockWatch: notices that the wall clock was stepped, or that the machine was suspended.
//
// The kernel reports a step by cancelling a timer that never expires. So no polling is necessary,
// and an idle process stays idle. A step back is reported as well as a step forward.
#pragma once

#include <functional>

#include "loop/loop.h"
#include "os/descriptor.h"

namespace tubed::loop {

class ClockWatch {
 public:
  // Calls `stepped` in the loop soon after each step; never if the kernel has no such timers.
  // `loop` outlives the object.
  ClockWatch(Loop& loop, std::function<void()> stepped);

 private:
  std::function<void()> stepped_;
  os::Descriptor timer_;
  Handle<uv_poll_t> handle_;  // destroyed before `timer_`, which it watches
};

}  // namespace tubed::loop
