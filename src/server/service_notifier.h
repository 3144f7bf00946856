// ServiceNotifier: notifies systemd that the server is ready and alive, and of its status
// [sd_notify(3)].
//
// The messages are sent from the loop: if the loop hangs, they stop and the watchdog of systemd
// ends the process. Without a service manager nothing is sent.
#pragma once

#include <functional>
#include <string>

#include "loop/loop.h"
#include "loop/timer.h"

namespace tubed::server {

class ServiceNotifier {
 public:
  // `status` returns one line about the state of the server.
  ServiceNotifier(loop::Loop& loop, std::function<std::string()> status);

  // The server begins to serve. Before this call the other functions send nothing.
  void ready();
  // Sends the status if it has changed, without waiting for the next regular time.
  void refresh();
  // A reload begins, and ends; `note` precedes the status once, if it is not empty.
  void reloading();
  void reloaded(const std::string& note);
  // The server is stopping, which takes `at_most`.
  void stopping(Duration at_most);

 private:
  void refresh_regularly();

  std::function<std::string()> status_;
  Duration period_;
  bool has_watchdog_;
  bool ready_ = false;
  std::string sent_;
  loop::Timer timer_;
};

}  // namespace tubed::server
