#include "loop/tick.h"

namespace tubed::loop {

Tick::Tick(Loop& loop, std::function<void()> end, std::function<void()> deferred_work)
    : end_(std::move(end)),
      deferred_work_(std::move(deferred_work)),
      before_wait_(this),
      after_events_(this),
      idle_(this) {
  uv_prepare_init(loop.uv(), before_wait_.get());
  uv_check_init(loop.uv(), after_events_.get());
  uv_idle_init(loop.uv(), idle_.get());
  uv_prepare_start(before_wait_.get(), [](uv_prepare_t* handle) { owner_of<Tick>(handle).end_(); });
  uv_check_start(after_events_.get(), [](uv_check_t* handle) { owner_of<Tick>(handle).end_(); });
}

void Tick::set_deferred_work(bool requested) {
  if (requested == requested_) return;
  requested_ = requested;
  if (requested) {
    uv_idle_start(idle_.get(), [](uv_idle_t* handle) { owner_of<Tick>(handle).deferred_work_(); });
  } else {
    uv_idle_stop(idle_.get());
  }
}

}  // namespace tubed::loop
