// TimeLimit: the option --timeout of a command that waits for a server, which also bounds the wait
// for a server that does not answer.
#pragma once

#include <chrono>
#include <optional>

#include "base/result.h"
#include "client/connection.h"
#include "tubectl/server.h"

namespace tubed::tubectl {

class TimeLimit {
 public:
  using Clock = std::chrono::steady_clock;

  // It begins now. No value: no limit. 0: one look at the server.
  explicit TimeLimit(std::optional<double> seconds);

  double seconds() const { return seconds_.value_or(0); }
  // True: the command is to give up after this look.
  bool is_over() const { return seconds_ && Clock::now() >= end_; }
  // At most `pause`.
  Clock::duration left(Clock::duration pause) const;
  Clock::time_point begin() const { return begin_; }

  // Connects, and bounds all waits of the connection.
  Result<client::Connection> connect(const Server& server) const;
  // The exit code for an error of the connection: kExitTimedOut, after printing that the server has
  // not answered in time, or the error itself.
  Result<int> report(const Error& error) const;

 private:
  // One look takes no longer than any command.
  bool bounds_answers() const { return seconds_ && *seconds_ > 0; }

  std::optional<double> seconds_;
  Clock::time_point begin_;
  Clock::time_point end_;
};

}  // namespace tubed::tubectl
