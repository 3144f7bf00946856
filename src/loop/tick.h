// Tick: calls the server for deferred work and at the end of each tick.
//
// One iteration of libuv's loop is, in this order:
//
// 1. timers that have expired,
// 2. deferred work, if it was requested,
// 3. the end of a tick,
// 4. waiting for events, but not if deferred work is requested,
// 5. events: connections, signals, completed file operations,
// 6. the end of a tick.
//
// So an end of tick follows every change by a callback before the loop waits.
#pragma once

#include <functional>

#include "loop/loop.h"

namespace tubed::loop {

class Tick {
 public:
  // Calls `end` in steps 3 and 6, `deferred_work` in step 2. `loop` outlives the object.
  Tick(Loop& loop, std::function<void()> end, std::function<void()> deferred_work);

  // Requests deferred work in every following iteration, or cancels the request. O(1).
  void set_deferred_work(bool requested);

 private:
  std::function<void()> end_;
  std::function<void()> deferred_work_;
  bool requested_ = false;
  Handle<uv_prepare_t> before_wait_;
  Handle<uv_check_t> after_events_;
  Handle<uv_idle_t> idle_;
};

}  // namespace tubed::loop
