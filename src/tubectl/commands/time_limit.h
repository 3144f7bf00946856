// TimeLimit: the option --timeout of a command that waits for a server. It also bounds the wait for
// a server that does not answer.
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

  // Starts now. No value: no limit. 0: a single query.
  explicit TimeLimit(std::optional<double> seconds);

  double seconds() const { return seconds_.value_or(0); }
  // True if the command must give up after the current query.
  bool is_over() const { return seconds_ && Clock::now() >= end_; }
  // The time left, at most `pause`.
  Clock::duration left(Clock::duration pause) const;
  Clock::time_point begin() const { return begin_; }

  // Connects, with all waits of the connection bounded.
  Result<client::Connection> connect(const Server& server) const;
  // Returns kExitTimedOut, after printing that the server has not answered in time, if the limit
  // caused the error of the connection; otherwise the error.
  Result<int> report(const Error& error) const;

 private:
  // A single query (0 s) waits as long as any command.
  bool bounds_answers() const { return seconds_ && *seconds_ > 0; }

  std::optional<double> seconds_;
  Clock::time_point begin_;
  Clock::time_point end_;
};

}  // namespace tubed::tubectl
