// Pipelining: many commands on one connection, without waiting for each answer.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "tubectl/client.h"

namespace tubed::tubectl {

// What is in flight at most: so many commands, or so many bytes of them.
inline constexpr std::size_t kCommandsInFlight = 256;
inline constexpr std::size_t kBytesInFlight = 256 * 1024;

// Sends commands as long as make(commands) appends one and returns true, and gives the answers, in
// order, to take(Answer&&), which returns Result<void>: its error ends it at once, and the answers
// that are still under way are lost with the connection.
template <class Make, class Take>
Result<void> pipelined(Client& client, Make make, Take take) {
  std::string commands;
  bool more = true;
  std::size_t in_flight = 0;
  while (more || in_flight > 0) {
    commands.clear();
    while (more && in_flight < kCommandsInFlight && commands.size() < kBytesInFlight) {
      more = make(commands);
      if (more) ++in_flight;
    }
    if (!commands.empty()) TRY(client.send(commands));
    // Half of them stay in flight, so that the server always has something to do.
    const std::size_t keep = more ? in_flight / 2 : 0;
    while (in_flight > keep) {
      auto answer = TRY(client.receive());
      --in_flight;
      TRY(take(std::move(answer)));
    }
  }
  return {};
}

// The same for a number of commands that is known: write(i, commands) appends the one, and
// take(i, Answer&&) is given its answer.
template <class Write, class Take>
Result<void> ask_each(Client& client, std::size_t count, Write write, Take take) {
  std::size_t asked = 0;
  std::size_t answered = 0;
  const auto make = [&](std::string& commands) {
    if (asked == count) return false;
    write(asked++, commands);
    return true;
  };
  return pipelined(client, make, [&](Answer&& answer) -> Result<void> {
    take(answered++, std::move(answer));
    return {};
  });
}

}  // namespace tubed::tubectl
