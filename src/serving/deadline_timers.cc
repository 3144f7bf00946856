#include "serving/deadline_timers.h"

namespace tubed::serving {

DeadlineTimer::DeadlineTimer(loop::Loop& loop, std::function<void()> due)
    : due_(std::move(due)), timer_(loop, [this] {
        armed_ = kNever;
        due_();
      }) {}

void DeadlineTimer::rearm(Time deadline, Time now) {
  armed_ = deadline;
  timer_.arm(deadline <= now ? Duration::zero() : deadline - now);
}

}  // namespace tubed::serving
