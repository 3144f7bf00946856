#include "loop/wakeup.h"

#include <utility>

#include "base/assert.h"

namespace tubed::loop {

Wakeup::Wakeup(Loop& loop, std::function<void()> woken) : woken_(std::move(woken)), handle_(this) {
  const int made = uv_async_init(loop.uv(), handle_.get(), [](uv_async_t* handle) {
    const auto woken_now = owner_of<Wakeup>(handle).woken_;  // may destroy the owner
    woken_now();
  });
  TUBED_ASSERT(made == 0);
}

void Wakeup::wake() {
  uv_async_send(handle_.get());
}

}  // namespace tubed::loop
