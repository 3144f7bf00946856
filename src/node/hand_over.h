// HandOver: the wait of a server that stops, and has asked another node to lead.
#pragma once

#include <functional>
#include <utility>

#include "base/time.h"
#include "loop/timer.h"
#include "os/log.h"

namespace tubed::node {

class HandOver {
 public:
  // `loop` and `log` outlive the object.
  HandOver(loop::Loop& loop, os::Log& log) : log_(log), timer_(loop, [this] { give_up(); }) {}

  // Calls `done` once: in end(), or after `limit`. `done` may destroy the object.
  void begin(Duration limit, std::function<void()> done) {
    done_ = std::move(done);
    timer_.arm(limit);
  }
  bool is_under_way() const { return done_ != nullptr; }
  // Another node leads. Precondition: is_under_way().
  void end() {
    timer_.disarm();
    std::exchange(done_, nullptr)();
  }

 private:
  void give_up() {
    log_.warning("stopping as the leader, because no other node has taken over");
    std::exchange(done_, nullptr)();
  }

  os::Log& log_;
  std::function<void()> done_;
  loop::Timer timer_;
};

}  // namespace tubed::node
