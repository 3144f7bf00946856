// ClockWatch: notices when the wall clock is stepped or the machine was suspended.
//
// A timer that never expires is cancelled by the kernel at each step, forward or back. No polling
// is necessary: an idle process stays idle.
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
