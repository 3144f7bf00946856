// The wait of drain --wait, which is that of wait-idle --held --draining.
#pragma once

#include <string_view>

#include "base/result.h"
#include "client/connection.h"
#include "tubectl/commands/time_limit.h"

namespace tubed::tubectl {

// The line that a server sends before it ends because it has drained, after announce_drained().
inline constexpr std::string_view kDrainedLine = "DRAINED";
// Asks the server for that line. False: it does not know it, and its end does not show whether it
// had drained. Precondition: no reply is pending.
Result<bool> announce_drained(client::Connection& connection);

// Waits until no job is reserved on a server that drains, or until it has ended. `connection` has
// shown that it drains; `announces`: announce_drained() of it. Returns the exit code, after
// printing why it is not 0: kExitTimedOut when the limit is over, kExitFailure if the server no
// longer drains or has ended otherwise. It asks every 0.1 to 1 s.
Result<int> wait_until_drained(client::Connection& connection, const TimeLimit& limit,
                               bool announces);

}  // namespace tubed::tubectl
