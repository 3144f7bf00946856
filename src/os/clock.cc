#include "os/clock.h"

#include <ctime>

namespace tubed::os {

namespace {

Time now_by(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return Time(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

}  // namespace

Time monotonic_now() {
  return now_by(CLOCK_MONOTONIC);
}

Time boot_time_now() {
  return now_by(CLOCK_BOOTTIME);
}

Duration wall_time() {
  return std::chrono::system_clock::now().time_since_epoch();
}

Duration wall_offset() {
  return wall_time() - monotonic_now().time_since_epoch();
}

}  // namespace tubed::os
