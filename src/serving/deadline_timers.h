// The timers of a server: one for each kind of deadline, never one for each job or client.
//
// libuv keeps its timers in a heap: arming one for each command would cost more than the command. A
// timer that is armed too early expires once without effect: the callback looks for due work, and
// the end of the tick arms the timer again.
#pragma once

#include <functional>

#include "engine/engine.h"
#include "loop/timer.h"
#include "os/clock.h"

namespace tubed::serving {

class DeadlineTimer {
 public:
  // `due` is called at the moment for which the timer is armed, or a little earlier or later.
  DeadlineTimer(loop::Loop& loop, std::function<void()> due);

  // Expires at `deadline` at the latest; kNever arms nothing. A later deadline than the armed one
  // leaves the timer as it is. O(1) then, else O(log timers).
  void arm(Time deadline, Time now) {
    if (deadline < armed_) rearm(deadline, now);
  }

 private:
  void rearm(Time deadline, Time now);

  Time armed_ = kNever;
  std::function<void()> due_;
  loop::Timer timer_;
};

struct DeadlineTimers {
  // `tick` begins a tick, which does what is due in the engine and in the log; `timeouts` closes
  // clients.
  DeadlineTimers(loop::Loop& loop, const std::function<void()>& tick,
                 const std::function<void()>& timeouts)
      : delays(loop, tick),
        reservations(loop, tick),
        pauses(loop, tick),
        clients(loop, timeouts),
        log(loop, tick) {}

  void arm(const engine::Deadlines& next, Time now) {
    delays.arm(next.delay, now);
    // Sessions that are still closing have work for the next tick.
    reservations.arm(next.closing ? now : next.ttr, now);
    pauses.arm(next.pause, now);
  }

  DeadlineTimer delays;
  DeadlineTimer reservations;  // TTRs, and the timeouts of reserves
  DeadlineTimer pauses;
  DeadlineTimer clients;
  DeadlineTimer log;
};

}  // namespace tubed::serving
