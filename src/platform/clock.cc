#include "platform/clock.h"

#include <uv.h>

namespace tubed::platform {

Time monotonic_now() {
  return Time(Duration(static_cast<std::int64_t>(uv_hrtime())));
}

Duration wall_time() {
  return std::chrono::system_clock::now().time_since_epoch();
}

Duration wall_offset() {
  return wall_time() - monotonic_now().time_since_epoch();
}

}  // namespace tubed::platform
