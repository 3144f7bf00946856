// Replaces service_manager.cc in a build without libsystemd (TUBED_SYSTEMD=OFF): sends no
// notifications and knows no units.
#include <cstdlib>
#include <string>

#include <unistd.h>

#include "os/service_manager.h"

namespace tubed::os {

Result<std::vector<InheritedSocket>> inherited_sockets() {
  // A service manager has passed sockets that this process does not serve. Clients that connect to
  // them would wait without limit.
  const char* for_process = std::getenv("LISTEN_PID");
  if (std::getenv("LISTEN_FDS") != nullptr && for_process != nullptr &&
      std::to_string(::getpid()) == for_process) {
    return Error{"sockets are passed on (LISTEN_FDS), but this tubed was built without systemd"};
  }
  return std::vector<InheritedSocket>();
}

bool has_service_manager() {
  return false;
}

void notify_status(std::string_view) {}
void notify_starting(std::string_view, Duration) {}
void notify_ready(std::string_view) {}
void notify_reloading() {}
void notify_stopping(std::string_view, Duration) {}

Duration watchdog_interval() {
  return Duration::zero();
}

void notify_watchdog() {}

Result<UnitState> unit_state(const std::string& unit) {
  return Error{"this tubed was built without systemd and cannot ask it for " + unit};
}

std::string unit_of_process(std::uint64_t) {
  return "";
}

Result<std::uint64_t> main_process_of(const std::string& unit) {
  return unit_state(unit).error();
}

}  // namespace tubed::os
