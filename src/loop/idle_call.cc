#include "loop/idle_call.h"

namespace tubed::loop {

IdleCall::IdleCall(Loop& loop, std::function<void()> call) : call_(std::move(call)), handle_(this) {
  uv_idle_init(loop.uv(), handle_.get());
}

void IdleCall::arm() {
  uv_idle_start(handle_.get(), [](uv_idle_t* handle) {
    uv_idle_stop(handle);
    owner_of<IdleCall>(handle).call_();
  });
}

void IdleCall::disarm() {
  uv_idle_stop(handle_.get());
}

}  // namespace tubed::loop
