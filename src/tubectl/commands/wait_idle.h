// What drain --wait shares with wait-idle --held --draining.
#pragma once

#include <optional>

#include "base/result.h"
#include "client/connection.h"

namespace tubed::tubectl {

// Waits until no job is reserved on a server that drains, or until it has ended. Returns the exit
// code, after printing why it is not 0: kExitTimedOut after `timeout` seconds, kExitFailure if the
// server does not drain any more. It asks every 0.1 to 1 s.
Result<int> wait_until_drained(client::Connection& connection, std::optional<double> timeout);

}  // namespace tubed::tubectl
