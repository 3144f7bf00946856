#include "os/clock.h"

#include <ctime>

namespace tubed::os {

Time monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return Time(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

Duration wall_time() {
  return std::chrono::system_clock::now().time_since_epoch();
}

Duration wall_offset() {
  return wall_time() - monotonic_now().time_since_epoch();
}

}  // namespace tubed::os
