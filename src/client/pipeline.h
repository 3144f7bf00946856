// Pipelining: many commands on one connection, without waiting for each reply.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "client/connection.h"

namespace tubed::client {

// The limit in flight: this number of commands, or about this number of bytes of commands.
inline constexpr std::size_t kCommandsInFlight = 256;
inline constexpr std::size_t kBytesInFlight = 256 * 1024;

// Sends commands while make(commands) appends one and returns true, and passes the replies, in
// order, to take(Reply&&), which returns Result<void>. Returns an error of take() immediately; the
// connection is then unusable, because replies are still pending.
template <class Make, class Take>
Result<void> pipelined(Connection& connection, Make make, Take take) {
  std::string commands;
  bool more = true;
  std::size_t in_flight = 0;
  while (more || in_flight > 0) {
    commands.clear();
    while (more && in_flight < kCommandsInFlight && commands.size() < kBytesInFlight) {
      more = make(commands);
      if (more) ++in_flight;
    }
    if (!commands.empty()) TRY(connection.send(commands));
    // Keeps half of them in flight, to keep the server busy.
    const std::size_t keep = more ? in_flight / 2 : 0;
    while (in_flight > keep) {
      auto reply = TRY(connection.receive());
      --in_flight;
      TRY(take(std::move(reply)));
    }
  }
  return {};
}

// pipelined() for a known number of commands: write(i, commands) appends command i, and take(i,
// Reply&&) gets its reply.
template <class Write, class Take>
Result<void> ask_each(Connection& connection, std::size_t count, Write write, Take take) {
  std::size_t asked = 0;
  std::size_t answered = 0;
  const auto make = [&](std::string& commands) {
    if (asked == count) return false;
    write(asked++, commands);
    return true;
  };
  return pipelined(connection, make, [&](Reply&& reply) -> Result<void> {
    take(answered++, std::move(reply));
    return {};
  });
}

}  // namespace tubed::client
