// The wait of drain --wait, equal to wait-idle --held --draining.
#pragma once

#include <string_view>

#include "base/result.h"
#include "client/connection.h"
#include "tubectl/commands/time_limit.h"

namespace tubed::tubectl {

// After announce_drained(), a server that ends because it has drained sends this line last.
inline constexpr std::string_view kDrainedLine = "DRAINED";
// Asks the server to announce kDrainedLine. Returns false if the server does not know the command:
// its end does not show whether it had drained. Precondition: no reply is pending.
Result<bool> announce_drained(client::Connection& connection);

// Waits until a draining server has no reserved job, or has ended. `connection` has shown that it
// drains; `announces` is the result of announce_drained(). Returns the exit code, after printing
// the reason if it is not 0: kExitTimedOut at the limit, kExitFailure if the server no longer
// drains or has ended otherwise. With `json` it prints the result as wait-idle --json does. Polls
// every 0.1 to 1 s.
Result<int> wait_until_drained(client::Connection& connection, const TimeLimit& limit,
                               bool announces, bool json);

}  // namespace tubed::tubectl
