// Turn: the beat of the loop. One turn of the loop is: work left over, end of turn, wait for
// events, events, end of turn.
#pragma once

#include <functional>

#include "platform/loop.h"

namespace tubed::platform {

class Turn {
 public:
  // `end` is called after timers and left-over work, before the loop waits, and again after events.
  // `left_over` is called once a turn while asked for.
  Turn(Loop& loop, std::function<void()> end, std::function<void()> left_over);

  // While true the loop does not wait for events, and calls left_over each turn.
  void ask_for_left_over(bool asked);

 private:
  std::function<void()> end_;
  std::function<void()> left_over_;
  bool asked_ = false;
  Handle<uv_prepare_t> before_wait_;
  Handle<uv_check_t> after_events_;
  Handle<uv_idle_t> idle_;
};

}  // namespace tubed::platform
