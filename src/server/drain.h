// Drain: the command line option --drain, which puts the running server into drain mode.
#pragma once

#include "config/settings.h"

namespace tubed::server {

// Finds the server by its pid file or through systemd, sends it SIGUSR1, and waits until it drains.
// If drain.exit makes it end, waits for that, without limit. Prints each step. Returns the exit
// code of the process: 0; kExitDrainTimedOut, with a line on stderr, if drain.timeout has ended the
// server; or kExitNoServer, with a line on stderr, if no server was found, if drain mode was
// cancelled, if the server was stopped otherwise, or if another server runs in its place.
int drain_server(const Settings& settings);

}  // namespace tubed::server
