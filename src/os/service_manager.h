// Supervisor: systemd, as this process sees it: the sockets it passes on, and what it is told.
// Without one nobody listens, and that is fine; a build without libsystemd sees none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "os/socket.h"

namespace tubed::os {

// A listening stream socket that was open before this process was [sd_listen_fds(3)].
struct InheritedSocket {
  Socket socket;
  std::string name;  // as LISTEN_FDNAMES has it
  bool is_unix = false;
};

// All of them, in the order of their descriptors, which means nothing. To be called once, before
// anything else is opened. The error names a descriptor that is no such socket.
Result<std::vector<InheritedSocket>> inherited_sockets();

// Whether NOTIFY_SOCKET is set: somebody wants to hear what follows [sd_notify(3)].
bool has_service_manager();

// One line of what is going on, as `systemctl status` shows it.
void notify_status(std::string_view status);
// The start takes longer: another `more` from now, at least.
void notify_starting(std::string_view status, Duration more);
void notify_ready(std::string_view status);
// Settings are read again; notify_ready() says that it is done.
void notify_reloading();
void notify_stopping(std::string_view status, Duration at_most);

// How often the supervisor wants to hear notify_alive(), or it ends this process; zero: it
// does not care.
Duration watchdog_interval();
void notify_alive();

// A unit of the system's manager, as the manager described it a moment ago.
struct UnitState {
  std::string active;                     // ActiveState: "active", "deactivating", "inactive", ...
  bool has_job = false;                   // it is being started or stopped, or is to be
  std::vector<std::string> triggered_by;  // names of the units that start it, for example sockets
  std::uint64_t main_process = 0;         // of a service; 0: it does not run
  std::string status;                     // of a service: the last STATUS= that it sent
};
// `unit` has its suffix, for example "tubed.service". The error is one line.
Result<UnitState> unit_state(const std::string& unit);

// The unit that a process belongs to; empty: none.
std::string unit_of_process(std::uint64_t process);

// The process that serves a unit of the system's manager.
Result<std::uint64_t> main_process_of(const std::string& unit);

}  // namespace tubed::os
