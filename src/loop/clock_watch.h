// ClockWatch: notices that the wall clock was stepped, or that the machine was suspended.
//
// The kernel reports it through a timer that never expires. Nothing is read from time to time, so
// that an idle process stays idle.
#pragma once

#include <functional>

#include "loop/loop.h"
#include "os/descriptor.h"

namespace tubed::loop {

class ClockWatch {
 public:
  // `stepped` is called in the loop, soon after. Where the kernel has no such timers it never is.
  ClockWatch(Loop& loop, std::function<void()> stepped);

 private:
  std::function<void()> stepped_;
  os::Descriptor timer_;
  Handle<uv_poll_t> handle_;  // goes before what it watches
};

}  // namespace tubed::loop
