// Supervisor: what systemd is told of this process. Without systemd nobody listens, and that is
// fine.
#pragma once

#include <string_view>

namespace tubed::platform {

// One line of what is going on, as `systemctl status` shows it. Does nothing when NOTIFY_SOCKET is
// not set.
void tell_supervisor_status(std::string_view status);

}  // namespace tubed::platform
