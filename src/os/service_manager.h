// The service manager, systemd: the sockets that it passes to this process, the notifications that
// this process sends to it, and the state of its units.
//
// Without a service manager the notifications do nothing. service_manager.cc uses libsystemd; a
// build without it has no_service_manager.cc instead. All functions are for one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "os/socket.h"

namespace tubed::os {

// A listening stream socket that the service manager has opened and passed on [sd_listen_fds(3)].
struct InheritedSocket {
  Socket socket;
  std::string name;  // from LISTEN_FDNAMES; several sockets may have the same name
  bool is_unix = false;
};

// Takes over all of them, in the order of their descriptors, which has no meaning. They become
// non-blocking and are closed in children. To be called once, before any descriptor is opened. The
// error names a descriptor that is not such a socket.
Result<std::vector<InheritedSocket>> inherited_sockets();

// True if NOTIFY_SOCKET is set: notifications have a receiver [sd_notify(3)].
bool has_service_manager();

// Notifications. They do not block, and errors are ignored. `status` is one line, which
// `systemctl status` shows; a line feed in it becomes a space.
void notify_status(std::string_view status);
// The start of the service takes longer: it must be ready within `more` from now.
void notify_starting(std::string_view status, Duration more);
// The service is ready, or a reload is complete.
void notify_ready(std::string_view status);
// A reload has begun.
void notify_reloading();
// The service is stopping, which takes `at_most`.
void notify_stopping(std::string_view status, Duration at_most);

// The longest time between two calls of notify_watchdog() before the service manager ends this
// process. Zero: it does not watch.
Duration watchdog_interval();
void notify_watchdog();

// The state of a unit of the system's service manager at the moment of the call.
struct UnitState {
  std::string active;                     // ActiveState: "active", "deactivating", "inactive", ...
  bool has_job = false;                   // a start or stop is queued or running
  std::vector<std::string> triggered_by;  // names of the units that start it, for example sockets
  std::uint64_t main_process = 0;         // of a service; 0: it is not running
  std::string status;                     // of a service: the last status that it has sent
};
// Blocks until the service manager has answered. `unit` includes its suffix, for example
// "tubed.service". The error is one line.
Result<UnitState> unit_state(const std::string& unit);

// The unit that a process belongs to. Empty: none.
std::string unit_of_process(std::uint64_t process);

// The main process of a unit of the system's service manager. An error if it is not running.
Result<std::uint64_t> main_process_of(const std::string& unit);

}  // namespace tubed::os
