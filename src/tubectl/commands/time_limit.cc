#include "tubectl/commands/time_limit.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/planted.h"
#include "tubectl/commands/command.h"
#include "tubectl/exit_codes.h"

namespace tubed::tubectl {

TimeLimit::TimeLimit(std::optional<double> seconds)
    : seconds_(seconds),
      begin_(Clock::now()),
      end_(begin_ + std::chrono::duration_cast<Clock::duration>(
                        std::chrono::duration<double>(seconds.value_or(0)))) {}

TimeLimit::Clock::duration TimeLimit::left(Clock::duration pause) const {
  if (!seconds_) return pause;
  return std::clamp(end_ - Clock::now(), Clock::duration::zero(), pause);
}

Result<client::Connection> TimeLimit::connect(const Server& server) const {
  if (!bounds_answers() || TUBED_PLANTED(time_limit_without_answers)) {
    return tubectl::connect(server);
  }
  auto connection = TRY(tubectl::connect(server, left(client::kTimeout)));
  connection.set_deadline(end_);
  return connection;
}

Result<int> TimeLimit::report(const Error& error) const {
  if (!bounds_answers() || !is_over()) return error;
  return fail(kExitTimedOut,
              fmt::format("after {} s the server has not answered: {}", *seconds_, error.message));
}

}  // namespace tubed::tubectl
