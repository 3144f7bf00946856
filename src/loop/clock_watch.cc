#include "loop/clock_watch.h"

#include <cstdint>
#include <limits>

#include <sys/timerfd.h>
#include <unistd.h>

namespace tubed::loop {

namespace {

// Returns a timer that a step of the wall clock cancels, which makes it readable. Empty: not
// supported.
os::Descriptor open_timer() {
  os::Descriptor timer(::timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC));
  itimerspec never{};
  never.it_value.tv_sec = std::numeric_limits<time_t>::max();
  constexpr int kFlags = TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET;
  if (!timer || ::timerfd_settime(timer.number(), kFlags, &never, nullptr) != 0) return {};
  return timer;
}

}  // namespace

ClockWatch::ClockWatch(Loop& loop, std::function<void()> stepped)
    : stepped_(std::move(stepped)), timer_(open_timer()), handle_(this) {
  if (!timer_ || uv_poll_init(loop.uv(), handle_.get(), timer_.number()) != 0) {
    handle_.forget();
    return;
  }
  uv_poll_start(handle_.get(), UV_READABLE, [](uv_poll_t* handle, int, int) {
    auto& watch = owner_of<ClockWatch>(handle);
    std::uint64_t expirations = 0;
    // The read fails with ECANCELED, and rearms the timer for the next step.
    [[maybe_unused]] const auto got =
        ::read(watch.timer_.number(), &expirations, sizeof expirations);
    watch.stepped_();
  });
}

}  // namespace tubed::loop
