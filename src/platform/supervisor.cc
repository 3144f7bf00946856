#include "platform/supervisor.h"

#include <algorithm>
#include <string>

#include <systemd/sd-daemon.h>

namespace tubed::platform {

void tell_supervisor_status(std::string_view status) {
  std::string message = "STATUS=" + std::string(status);
  // What stands behind a line's end would be another message.
  std::replace(message.begin(), message.end(), '\n', ' ');
  ::sd_notify(0, message.c_str());
}

}  // namespace tubed::platform
