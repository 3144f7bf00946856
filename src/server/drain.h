// Drain: the command line option --drain, which puts the running server into drain mode.
#pragma once

#include "config/settings.h"

namespace tubed::server {

// Finds the server by its pid file or through systemd and sends it SIGUSR1. If drain.exit makes it
// end, waits for that, without limit. Prints each step. Returns the exit code of the process: 0; or
// kExitNoServer, with a line on stderr, if no server was found or if another server runs in its
// place.
int drain_server(const Settings& settings);

}  // namespace tubed::server
