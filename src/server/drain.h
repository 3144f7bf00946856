// Drain: what --drain does to the server that runs.
#pragma once

#include "config/settings.h"

namespace tubed::server {

// Finds the server by its pid file or through systemd, puts it into drain mode, waits for its end
// if drain.exit ends it, and prints what has happened. Returns the process's exit code: 0, or
// kExitNoServer with a line on stderr: no server was found, or another serves in its place.
int drain_server(const Settings& settings);

}  // namespace tubed::server
