#include "server/drain.h"

#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include "loop/signal.h"
#include "os/clock.h"
#include "os/pid_file.h"
#include "os/process.h"
#include "os/service_manager.h"
#include "server/exit_codes.h"

namespace tubed::server {

namespace {

using os::UnitState;

constexpr const char* kUnit = "tubed.service";
// When the process has ended, systemd stops the unit, for which it has 30 seconds, and then its
// sockets.
constexpr std::chrono::minutes kUnitTimeout{1};
constexpr std::chrono::milliseconds kPollInterval{20};
constexpr std::uint64_t kNoProcess = ~std::uint64_t{0};

// Flushes stdout, because the next step may take minutes.
void print_now(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void print_end_condition(const Settings& settings) {
  std::string end;
  switch (settings.drain_exit) {
    case DrainExit::never:
      end = "drain.exit is \"never\", so it does not end";
      break;
    case DrainExit::when_idle:
      end = "it ends once no job is reserved";
      break;
    case DrainExit::when_empty:
      end = "it ends once there is no job";
      break;
  }
  const bool ends = settings.drain_exit != DrainExit::never;
  const bool in_time = ends && settings.drain_timeout > Duration::zero();
  print_now(fmt::format("The server drains: it refuses puts, and {}{}.", end,
                        in_time ? ", or after drain.timeout" : ""));
}

bool is_changing(const UnitState& unit) {
  return unit.has_job || unit.active == "deactivating";
}

bool is_running(const UnitState& unit) {
  return unit.active == "active" || unit.active == "activating" || unit.active == "reloading";
}

// Waits until systemd has noticed the end of `process` and the unit does not change any more, and
// returns the state of the unit.
Result<UnitState> wait_for_unit(const std::string& name, std::uint64_t process) {
  const Time deadline = os::monotonic_now() + kUnitTimeout;
  for (;;) {
    auto unit = os::unit_state(name);
    if (!unit) return unit;
    if (unit->main_process != process && !is_changing(*unit)) return unit;
    if (os::monotonic_now() > deadline) {
      return Error{
          fmt::format("{}: still {} a minute after the server has ended", name, unit->active)};
    }
    std::this_thread::sleep_for(kPollInterval);
  }
}

// Prints which sockets would start the service again, or that none would.
void report_sockets(const std::string& name, const UnitState& service) {
  bool triggers = false;
  for (const std::string& socket : service.triggered_by) {
    const auto state = wait_for_unit(socket, kNoProcess);
    if (!state || !is_running(state.value())) continue;
    triggers = true;
    fmt::print(stderr,
               "tubed: warning: {} is open: the next connection starts a server that takes puts; "
               "systemctl stop {} closes it\n",
               socket, socket);
  }
  if (triggers) return;
  print_now(fmt::format(
      "Its sockets are closed, so clients are refused. To serve again: systemctl start {}", name));
}

// Prints the state of the service `name` whose server, `process`, has ended. An error if it was
// started again or did not drain.
Result<void> report_service(const std::string& name, std::uint64_t process) {
  const auto unit = TRY(wait_for_unit(name, process));
  const UnitState& service = unit;
  if (is_running(service)) return Error{name + " has ended and was started again: it takes puts"};
  if (service.active == "failed") {
    return Error{fmt::format("{} has failed: see systemctl status {}", name, name)};
  }
  if (!service.status.starts_with("drained")) {
    return Error{name + " was stopped before it had drained"};
  }
  print_now(fmt::format("{} has ended, {}.", name, service.status));
  report_sockets(name, service);
  return {};
}

// The service of which `process` is the main process. Empty: it was not started as a service.
std::string service_of(std::uint64_t process) {
  const std::string name = os::unit_of_process(process);
  if (!name.ends_with(".service")) return "";
  const auto main_process = os::main_process_of(name);
  return main_process && main_process.value() == process ? name : "";
}

Result<void> drain(const Settings& settings) {
  const auto number = TRY(settings.pid_file.empty() ? os::main_process_of(kUnit)
                                                    : os::process_of_pid_file(settings.pid_file));
  const auto process = TRY(os::OtherProcess::open(number));
  const std::string service = service_of(number);
  TRY(process.signal(SIGUSR1));
  print_end_condition(settings);
  if (settings.drain_exit == DrainExit::never) return {};
  TRY(process.wait_for_end());
  if (!service.empty()) return report_service(service, number);
  print_now("The server has ended.");
  return {};
}

}  // namespace

int drain_server(const Settings& settings) {
  const auto drained = drain(settings);
  if (drained) return 0;
  fmt::print(stderr, "tubed: {}\n", drained.error().message);
  return kExitNoServer;
}

}  // namespace tubed::server
