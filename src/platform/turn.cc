#include "platform/turn.h"

namespace tubed::platform {

Turn::Turn(Loop& loop, std::function<void()> end, std::function<void()> left_over)
    : end_(std::move(end)),
      left_over_(std::move(left_over)),
      before_wait_(this),
      after_events_(this),
      idle_(this) {
  uv_prepare_init(loop.uv(), before_wait_.get());
  uv_check_init(loop.uv(), after_events_.get());
  uv_idle_init(loop.uv(), idle_.get());
  uv_prepare_start(before_wait_.get(), [](uv_prepare_t* handle) { owner_of<Turn>(handle).end_(); });
  uv_check_start(after_events_.get(), [](uv_check_t* handle) { owner_of<Turn>(handle).end_(); });
}

void Turn::ask_for_left_over(bool asked) {
  if (asked == asked_) return;
  asked_ = asked;
  if (asked) {
    uv_idle_start(idle_.get(), [](uv_idle_t* handle) { owner_of<Turn>(handle).left_over_(); });
  } else {
    uv_idle_stop(idle_.get());
  }
}

}  // namespace tubed::platform
