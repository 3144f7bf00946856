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
// After the process systemd ends the unit, which has 30 seconds for that, and then its sockets.
constexpr std::chrono::minutes kUnitPatience{1};
constexpr std::chrono::milliseconds kLookEvery{20};
constexpr std::uint64_t kNoProcess = ~std::uint64_t{0};

// Flushed, for what follows may take minutes.
void print_now(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void print_what_follows(const Settings& settings) {
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

bool serves(const UnitState& unit) {
  return unit.active == "active" || unit.active == "activating" || unit.active == "reloading";
}

// The unit, once systemd has seen the end of `process` and has done what follows from it.
Result<UnitState> settled_unit(const std::string& name, std::uint64_t process) {
  const Time deadline = os::monotonic_now() + kUnitPatience;
  for (;;) {
    auto unit = os::unit_state(name);
    if (!unit) return unit;
    if (unit->main_process != process && !is_changing(*unit)) return unit;
    if (os::monotonic_now() > deadline) {
      return Error{
          fmt::format("{}: still {} a minute after the server has ended", name, unit->active)};
    }
    std::this_thread::sleep_for(kLookEvery);
  }
}

// Names the sockets that would start the service again, or says that none would.
void report_sockets(const std::string& name, const UnitState& service) {
  bool wakes = false;
  for (const std::string& socket : service.triggered_by) {
    const auto state = settled_unit(socket, kNoProcess);
    if (!state || !serves(state.value())) continue;
    wakes = true;
    fmt::print(stderr,
               "tubed: warning: {} is open: the next connection starts a server that takes puts; "
               "systemctl stop {} closes it\n",
               socket, socket);
  }
  if (wakes) return;
  print_now(fmt::format(
      "Its sockets are closed, so clients are refused. To serve again: systemctl start {}", name));
}

// Prints what is left of the service `name` whose server, `process`, has ended.
Result<void> report_service(const std::string& name, std::uint64_t process) {
  const auto unit = TRY(settled_unit(name, process));
  const UnitState& service = unit;
  if (serves(service)) return Error{name + " has ended and was started again: it takes puts"};
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

// The service whose main process that is; empty: it was started otherwise.
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
  print_what_follows(settings);
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
