// The service manager, systemd: the sockets that it passes to this process, the notifications that
// this process sends, and the state of its units.
//
// Without a service manager, notifications have no effect. A build without libsystemd replaces
// service_manager.cc by no_service_manager.cc. All functions belong to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "os/socket.h"

namespace tubed::os {

// A listening stream socket passed on by the service manager. [sd_listen_fds(3)]
struct InheritedSocket {
  Socket socket;
  std::string name;  // from LISTEN_FDNAMES; several sockets may have the same name
  bool is_unix = false;
};

// Takes over all inherited sockets, in the order of their descriptors, which has no meaning. Makes
// them non-blocking and close-on-exec. Call it once, before any descriptor is opened. The error
// names a descriptor that is not such a socket.
Result<std::vector<InheritedSocket>> inherited_sockets();

// True if NOTIFY_SOCKET is set: notifications have a receiver. [sd_notify(3)]
bool has_service_manager();

// Notifications do not block, and their errors are ignored. `status` is one line for `systemctl
// status`; a line feed in it becomes a space.
void notify_status(std::string_view status);
// Extends the start timeout: the service will be ready within `more` from now.
void notify_starting(std::string_view status, Duration more);
// The service is ready, or a reload is complete.
void notify_ready(std::string_view status);
// A reload has begun.
void notify_reloading();
// The service is stopping; this takes `at_most`.
void notify_stopping(std::string_view status, Duration at_most);

// Returns the longest time between two calls of notify_watchdog() before the service manager ends
// this process. Zero: no watchdog.
Duration watchdog_interval();
void notify_watchdog();

// The state of a unit of the system's service manager at the time of the call.
struct UnitState {
  std::string active;                     // ActiveState: "active", "deactivating", "inactive", ...
  bool has_job = false;                   // a start or stop is queued or running
  std::vector<std::string> triggered_by;  // units that start it, such as sockets
  std::uint64_t main_process = 0;         // of a service; 0: not running
  std::string status;                     // last status that a service has sent
};
// Blocks until the service manager has answered. `unit` includes its suffix, for example
// "tubed.service". The error is one line.
Result<UnitState> unit_state(const std::string& unit);

// Returns the unit that a process belongs to. Empty: none.
std::string unit_of_process(std::uint64_t process);

// Returns the main process of a unit of the system's service manager. Fails if it is not running.
Result<std::uint64_t> main_process_of(const std::string& unit);

}  // namespace tubed::os
