#include "server/drain.h"

#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include "platform/clock.h"
#include "platform/pid_file.h"
#include "platform/process.h"
#include "platform/signal.h"
#include "platform/supervisor.h"
#include "server/exit_codes.h"

namespace tubed::server {

namespace {

using platform::UnitState;

constexpr const char* kUnit = "tubed.service";
// After the process systemd ends the unit, which has 30 seconds for that, and then its sockets.
constexpr std::chrono::minutes kUnitPatience{1};
constexpr std::chrono::milliseconds kLookEvery{20};

// Flushed, for what follows may take minutes.
void print_line(const std::string& line) {
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
  print_line(fmt::format("The server drains: it refuses puts, and {}{}.", end,
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
  const Time deadline = platform::monotonic_now() + kUnitPatience;
  for (;;) {
    auto unit = platform::unit_state(name);
    if (!unit) return unit;
    if (unit->main_process != process && !is_changing(*unit)) return unit;
    if (platform::monotonic_now() > deadline) {
      return Error{
          fmt::format("{}: still {} a minute after the server has ended", name, unit->active)};
    }
    std::this_thread::sleep_for(kLookEvery);
  }
}

// Prints what is left of the service whose server has ended.
Result<void> report_service(std::uint64_t process) {
  const auto unit = settled_unit(kUnit, process);
  if (!unit) return unit.error();
  const UnitState& service = unit.value();
  if (serves(service)) {
    return Error{fmt::format("{} has ended and was started again: it takes puts", kUnit)};
  }
  if (service.active == "failed") {
    return Error{fmt::format("{} has failed: see systemctl status {}", kUnit, kUnit)};
  }
  if (!service.status.starts_with("drained")) {
    return Error{fmt::format("{} was stopped before it had drained", kUnit)};
  }
  print_line(fmt::format("{} has ended, {}.", kUnit, service.status));
  bool wakes = false;
  for (const std::string& name : service.triggered_by) {
    const auto socket = settled_unit(name, process);
    if (!socket || !serves(socket.value())) continue;
    wakes = true;
    fmt::print(stderr,
               "tubed: warning: {} is open: the next connection starts a server that takes puts; "
               "systemctl stop {} closes it\n",
               name, name);
  }
  if (!wakes) {
    print_line("Its sockets are closed, so clients are refused. To serve again: systemctl start " +
               std::string(kUnit));
  }
  return {};
}

Result<void> drain(const Settings& settings) {
  const auto number = settings.pid_file.empty() ? platform::main_process_of(kUnit)
                                                : platform::process_of_pid_file(settings.pid_file);
  if (!number) return number.error();
  const auto process = platform::OtherProcess::open(number.value());
  if (!process) return process.error();
  // Asked before the end: a server with a pid file may be no service.
  const auto before = platform::unit_state(kUnit);
  const bool is_service = before && before.value().main_process == number.value();
  if (auto sent = process.value().signal(SIGUSR1); !sent) return sent;
  print_what_follows(settings);
  if (settings.drain_exit == DrainExit::never) return {};
  if (auto ended = process.value().wait_for_end(); !ended) return ended;
  if (is_service) return report_service(number.value());
  print_line("The server has ended.");
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
