// HeldConnections: refused connections, which are closed a moment later.
//
// Some clients reconnect as soon as a connection is closed, without a pause and without end, and
// send the refused request again. If it were closed at once, such a client would take a processor
// of the server and one of its own.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <variant>

#include "base/time.h"
#include "loop/channel.h"
#include "os/socket.h"

namespace tubed::serving {

class HeldConnections {
 public:
  using Connection = std::variant<os::Socket, std::unique_ptr<loop::Channel>>;

  // A refused client makes at most seven connections in a second.
  static constexpr Duration kTime = std::chrono::milliseconds(150);
  static constexpr std::size_t kMost = 256;

  // Keeps the connection, which is not read from, for kTime; closes the oldest if more than kMost
  // are kept. `now` never decreases. O(1).
  void hold(Connection connection, Time now);
  // Closes the connections whose time has passed. O(closed).
  void close_due(Time now);
  void close_all();

  std::size_t count() const { return held_.size(); }
  // Returns when the next connection is closed; no value if it holds no connection.
  std::optional<Time> next_due() const {
    return held_.empty() ? std::nullopt : std::optional(held_.front().due);
  }

 private:
  struct Held {
    Connection connection;
    Time due;
  };

  void close_oldest();

  std::deque<Held> held_;  // in the order of their times
};

}  // namespace tubed::serving
