// Drain: the command line option --drain, which puts the running server into drain mode.
#pragma once

#include <cstdint>
#include <string_view>

#include "config/settings.h"

namespace tubed::server {

// The end of a server that has been put into drain mode.
enum class DrainResult : std::uint8_t {
  drained,
  timed_out,  // drain.timeout was over
  stopped,    // by a signal or a crash, before it had drained
  unknown,    // drained or stopped: the last status of 2.0.0 is the same
};
// As its last status says (status.h). Empty: it has left none.
DrainResult drain_result_of(std::string_view last_status);

// Finds the server by its pid file or through systemd, sends it SIGUSR1, and waits until it drains.
// If drain.exit makes it end, waits for that, without limit. Prints each step. Returns the exit
// code of the process: 0; os::kExitDrainTimedOut, with a line on stderr, if drain.timeout has ended
// the server; or os::kExitNoServer, with a line on stderr, if no server was found, if drain mode
// was cancelled, if the server was stopped otherwise, or if another server runs in its place.
int drain_server(const Settings& settings);

}  // namespace tubed::server
