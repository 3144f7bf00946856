// DeadlineTimer: a timer that is armed at a moment. The engine has three of them: delays, TTRs and
// waits, pauses; the server one of its own for patience. Never one a job.
#pragma once

#include "loop/timer.h"
#include "os/clock.h"

namespace tubed::server {

class DeadlineTimer {
 public:
  // `due` is called at the moment armed for or a little earlier or later; it looks itself what is
  // due, and arms again.
  DeadlineTimer(loop::Loop& loop, std::function<void()> due);

  // Rings at `deadline` at the latest. A later deadline than the one armed leaves the timer as it
  // is: to ring once in vain is cheaper than to be armed anew for each command.
  void arm(Time deadline, Time now) {
    if (deadline < armed_) rearm(deadline, now);
  }

 private:
  void rearm(Time deadline, Time now);

  Time armed_ = kNever;
  std::function<void()> due_;
  loop::Timer timer_;
};

}  // namespace tubed::server
