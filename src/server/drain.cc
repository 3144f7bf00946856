#include "server/drain.h"

#include <cstdio>
#include <optional>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "base/planted.h"
#include "loop/signal.h"
#include "os/clock.h"
#include "os/exit_codes.h"
#include "os/pid_file.h"
#include "os/process.h"
#include "os/service_manager.h"

namespace tubed::server {

namespace {

using os::UnitState;

constexpr const char* kUnit = "tubed.service";
// When the process has ended, systemd stops the unit, for which it has 30 seconds, and then its
// sockets.
constexpr std::chrono::minutes kUnitTimeout{1};
constexpr std::chrono::milliseconds kPollInterval{20};
constexpr std::chrono::milliseconds kUnitPollInterval{200};  // each asks systemd
// The server may recover its journal before it takes the signal.
constexpr std::chrono::minutes kBeginTimeout{10};
constexpr std::uint64_t kNoProcess = ~std::uint64_t{0};
// The last status of a server of 2.0.0 begins with this.
constexpr const char* kStatusOf200 = "stopping";

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
      end = settings.drain_reserves == DrainReserves::refuse
                ? "it gives out no jobs and ends once no job is reserved"
                : "it ends once no job is reserved";
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

// Waits until systemd has noticed the end of `process` and the unit no longer changes. Returns the
// state of the unit.
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

// Prints how the server `name` has ended, of which `status` is the last status, and returns the
// exit code. An error if it did not drain.
Result<int> report_end(const std::string& name, std::string_view status) {
  switch (drain_result_of(status)) {
    case DrainResult::timed_out:
      fmt::print(stderr, "tubed: {} has ended before it had drained: {}\n", name, status);
      return os::kExitDrainTimedOut;
    case DrainResult::stopped:
      return Error{name + " was stopped before it had drained"};
    case DrainResult::drained:
      print_now(fmt::format("{} has ended, {}.", name, status));
      break;
    case DrainResult::unknown:
      print_now(fmt::format("{} has ended; whether it had drained is not known.", name));
      break;
  }
  return 0;
}

// The same for the service `name` whose server, `process`, has ended. An error if it has been
// restarted.
Result<int> report_service(const std::string& name, std::uint64_t process) {
  const auto unit = TRY(wait_for_unit(name, process));
  const UnitState& service = unit;
  if (is_running(service)) return Error{name + " has ended and was started again: it takes puts"};
  if (service.active == "failed") {
    return Error{fmt::format("{} has failed: see systemctl status {}", name, name)};
  }
  const int code = TRY(report_end(name, service.status));
  report_sockets(name, service);
  return code;
}

// The service of which `process` is the main process. Empty: it was not started as a service.
std::string service_of(std::uint64_t process) {
  const std::string name = os::unit_of_process(process);
  if (!name.ends_with(".service")) return "";
  const auto main_process = os::main_process_of(name);
  return main_process && main_process.value() == process ? name : "";
}

// The state that a status reports. Unknown: while the server recovers, stops or has not taken the
// signal yet.
enum class DrainState : std::uint8_t { unknown, drains, serves };

// The server that drains: its process, and what it reports about its state.
class Draining {
 public:
  static Result<Draining> find(const Settings& settings) {
    std::optional<os::OtherPidFile> file;
    if (!settings.pid_file.empty()) file = TRY(os::OtherPidFile::open(settings.pid_file));
    const std::uint64_t number = file ? file->process() : TRY(os::main_process_of(kUnit));
    return Draining(std::move(file), number, TRY(os::OtherProcess::open(number)));
  }

  Result<void> begin() const { return process_.signal(SIGUSR1); }

  // False for a server of 2.0.0, which does not report in its pid file whether it drains, or how it
  // has ended.
  bool reports() const { return !file_ || file_->has_flag(); }

  // Waits until it drains or has ended. Precondition: reports().
  Result<void> wait_for_begin() const {
    const Time deadline = os::monotonic_now() + kBeginTimeout;
    while (state() != DrainState::drains) {
      const bool ended = TRY(process_.ends_within(file_ ? kPollInterval : kUnitPollInterval));
      if (ended) return {};
      if (os::monotonic_now() > deadline) {
        return Error{
            fmt::format("process {} does not drain: it has not taken the signal, or drain "
                        "mode was ended at once",
                        number_)};
      }
    }
    return {};
  }

  // Waits until it has ended. An error if drain mode was cancelled.
  Result<void> wait_for_end() const {
    for (;;) {
      const bool ended = TRY(process_.ends_within(file_ ? kPollInterval : kUnitPollInterval));
      if (ended) return {};
      if (state() == DrainState::serves) {
        return Error{"drain mode was ended by SIGUSR2 or undrain: the server takes puts again"};
      }
    }
  }

  Result<int> report() const {
    if (!service_.empty()) return report_service(service_, number_);
    const bool is_silent = !reports();
    return report_end("The server", is_silent ? kStatusOf200 : file_ ? file_->last_words() : "");
  }

 private:
  Draining(std::optional<os::OtherPidFile> file, std::uint64_t number, os::OtherProcess process)
      : file_(std::move(file)),
        number_(number),
        process_(std::move(process)),
        service_(service_of(number)) {}

  DrainState state() const {
    if (!reports()) return DrainState::unknown;
    if (file_) {
      const std::optional<bool> flag = file_->flag();
      if (!flag) return DrainState::unknown;
      return *flag ? DrainState::drains : DrainState::serves;
    }
    const auto unit = os::unit_state(kUnit);
    if (!unit || unit->main_process != number_ || !is_running(*unit)) return DrainState::unknown;
    const std::string_view status = unit->status;
    if (status.empty()) return DrainState::unknown;
    if (status.starts_with("draining")) return DrainState::drains;
    for (const std::string_view other : {"drain", "stopping", "recovering", "not reloaded"}) {
      if (status.starts_with(other)) return DrainState::unknown;
    }
    return DrainState::serves;
  }

  std::optional<os::OtherPidFile> file_;  // no value: the unit has the state
  std::uint64_t number_;
  os::OtherProcess process_;
  std::string service_;  // empty: it was not started as a service
};

Result<int> drain(const Settings& settings) {
  const Draining server = TRY(Draining::find(settings));
  TRY(server.begin());
  if (server.reports()) {
    TRY(server.wait_for_begin());
    print_end_condition(settings);
  } else {
    print_now("The server, a tubed 2.0.0, has SIGUSR1, and does not report whether it drains.");
  }
  if (settings.drain_exit == DrainExit::never) return 0;
  TRY(server.wait_for_end());
  return server.report();
}

}  // namespace

DrainResult drain_result_of(std::string_view last_status) {
  if (last_status.starts_with("drain.timeout")) return DrainResult::timed_out;
  if (last_status.starts_with("drained") || TUBED_PLANTED(drain_believes_any_end))
    return DrainResult::drained;
  if (last_status.starts_with(kStatusOf200) && !TUBED_PLANTED(end_of_2_0_0_is_a_stop))
    return DrainResult::unknown;
  return DrainResult::stopped;
}

int drain_server(const Settings& settings) {
  const auto drained = drain(settings);
  if (drained) return *drained;
  fmt::print(stderr, "tubed: {}\n", drained.error().message);
  return os::kExitNoServer;
}

}  // namespace tubed::server
