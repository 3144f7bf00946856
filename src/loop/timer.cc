#include "loop/timer.h"

#include <algorithm>

namespace tubed::loop {

namespace {

// libuv adds the delay to its clock; this does not overflow it.
constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 365);

}  // namespace

Timer::Timer(Loop& loop, std::function<void()> expired)
    : expired_(std::move(expired)), handle_(this) {
  uv_timer_init(loop.uv(), handle_.get());
}

void Timer::arm(Duration delay) {
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(std::max(delay, Duration()));
  const auto wait = static_cast<std::uint64_t>(std::min(rounded, kLongest).count());
  uv_timer_start(
      handle_.get(), [](uv_timer_t* timer) { owner_of<Timer>(timer).expired_(); }, wait, 0);
}

void Timer::disarm() {
  uv_timer_stop(handle_.get());
}

}  // namespace tubed::loop
