#include "server/drain.h"

#include <fmt/format.h>

#include "platform/pid_file.h"
#include "platform/process.h"
#include "platform/signal.h"
#include "platform/supervisor.h"
#include "server/exit_codes.h"

namespace tubed::server {

namespace {

constexpr const char* kUnit = "tubed.service";

Result<void> drain(const Settings& settings) {
  auto process = settings.pid_file.empty() ? platform::main_process_of(kUnit)
                                           : platform::process_of_pid_file(settings.pid_file);
  if (!process) return process.error();
  return platform::signal_process(*process, SIGUSR1, settings.drain_exit != DrainExit::never);
}

}  // namespace

int drain_server(const Settings& settings) {
  const auto drained = drain(settings);
  if (drained) return 0;
  fmt::print(stderr, "tubed: {}\n", drained.error().message);
  return kExitNoServer;
}

}  // namespace tubed::server
