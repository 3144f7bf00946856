// The wait of drain --wait, which is that of wait-idle --held --draining.
#pragma once

#include <chrono>
#include <optional>

#include "base/result.h"
#include "client/connection.h"

namespace tubed::tubectl {

// Waits until no job is reserved on a server that drains, or until it has ended. `connection` has
// shown that it drains. Returns the exit code, after printing why it is not 0: kExitTimedOut when
// `timeout` seconds have passed since `begin`, kExitFailure if the server does not drain any more.
// It asks every 0.1 to 1 s.
Result<int> wait_until_drained(client::Connection& connection,
                               std::chrono::steady_clock::time_point begin,
                               std::optional<double> timeout);

}  // namespace tubed::tubectl
