// PendingConnections: the connections of a listener that cannot be served yet, oldest first.
//
// A client can delay each step of a TLS handshake or of a PROXY header, so a connection must become
// ready within a time limit, and when too many are pending, the oldest is closed: an honest client
// needs only a few round trips.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <utility>

#include "base/time.h"
#include "loop/timer.h"
#include "os/clock.h"

namespace tubed::loop {

// timeouts.handshake and limits.handshakes.
struct HandshakeLimits {
  Duration timeout = std::chrono::seconds(10);
  std::size_t pending = 1024;
};

// `Connection` has `owner`, a reference, and derives from PendingPlace<Connection>.
template <class Connection>
struct PendingPlace {
  Time since = os::monotonic_now();
  typename std::list<std::unique_ptr<Connection>>::iterator place;
};

template <class Connection>
class PendingConnections {
 public:
  enum class Excess { time, number };
  // Closes a connection that exceeds a limit; take() is called for it.
  using Close = std::function<void(Connection&, Excess)>;

  // `loop` outlives it.
  PendingConnections(Loop& loop, Close close)
      : close_(std::move(close)), deadline_(loop, [this] { close_overdue(); }) {}

  // Sets the limits, which also apply to connections that are pending.
  void set_limits(const HandshakeLimits& limits) {
    limits_ = limits;
    arm_deadline();
  }

  // Adds a connection, and closes the oldest if there are too many. O(1).
  Connection& add(std::unique_ptr<Connection> connection) {
    if (list_.size() >= limits_.pending) close_(*list_.front(), Excess::number);
    list_.push_back(std::move(connection));
    list_.back()->place = std::prev(list_.end());
    if (list_.size() == 1) arm_deadline();
    return *list_.back();
  }

  // Removes a connection and returns it. O(1).
  std::unique_ptr<Connection> take(Connection& connection) {
    auto taken = std::move(*connection.place);
    list_.erase(taken->place);
    return taken;
  }

  // Calls visit(Connection&) for each connection of this owner; `visit` may take it. O(pending).
  template <class Owner, class Visit>
  void visit_of(const Owner& owner, const Visit& visit) {
    for (auto next = list_.begin(); next != list_.end();) {
      Connection& connection = **next++;
      if (&connection.owner == &owner) visit(connection);
    }
  }

  std::size_t size() const { return list_.size(); }

 private:
  void close_overdue() {
    const Time now = os::monotonic_now();
    while (!list_.empty() && list_.front()->since + limits_.timeout <= now)
      close_(*list_.front(), Excess::time);
    arm_deadline();
  }

  void arm_deadline() {
    if (list_.empty()) return deadline_.disarm();
    deadline_.arm(list_.front()->since + limits_.timeout - os::monotonic_now());
  }

  Close close_;
  HandshakeLimits limits_;
  std::list<std::unique_ptr<Connection>> list_;
  Timer deadline_;
};

}  // namespace tubed::loop
