// Tick: the beat of the loop. One turn of the loop is: work left over, end of turn, wait for
// events, events, end of turn.
#pragma once

#include <functional>

#include "loop/loop.h"

namespace tubed::loop {

class Tick {
 public:
  // `end` is called after timers and left-over work, before the loop waits, and again after events.
  // `deferred_work` is called once a turn while asked for.
  Tick(Loop& loop, std::function<void()> end, std::function<void()> deferred_work);

  // While true the loop does not wait for events, and calls deferred_work each turn.
  void set_deferred_work(bool asked);

 private:
  std::function<void()> end_;
  std::function<void()> deferred_work_;
  bool asked_ = false;
  Handle<uv_prepare_t> before_wait_;
  Handle<uv_check_t> after_events_;
  Handle<uv_idle_t> idle_;
};

}  // namespace tubed::loop
