// Supervision: keeps the supervisor told: that this serves, how it is doing, that it is alive.
//
// It speaks from the loop itself, so that a loop that is stuck falls silent.
#pragma once

#include <functional>
#include <string>

#include "loop/loop.h"
#include "loop/timer.h"

namespace tubed::server {

class Supervision {
 public:
  // `status`: one line of what is going on.
  Supervision(loop::Loop& loop, std::function<std::string()> status);

  // It serves from now on.
  void ready();
  // Something has changed that somebody may be waiting to see.
  void refresh();
  void reloading();
  // Settings are as they are to be; `note` goes before the status once, if it is not empty.
  void reloaded(const std::string& note);
  // It may take so long.
  void stopping(Duration at_most);

 private:
  void beat();

  std::function<std::string()> status_;
  Duration period_;
  bool has_watchdog_;
  bool ready_ = false;
  std::string told_;
  loop::Timer timer_;
};

}  // namespace tubed::server
