// TestServer: the parts of a server that only test mode has: the test mode of its queue, the
// control connection on standard input and output, the first jobs and the announced address.
//
// The control connection is a client like any other, and the first to connect: it has session 0.
// When it ends, the server closes all connections at once and ends.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "commands/service.h"
#include "config/test_mode.h"
#include "loop/channel.h"
#include "loop/timer.h"
#include "serving/clients.h"
#include "test_mode/test_mode.h"

namespace tubed::server {

class TestServer {
 public:
  // Returns when the time of the queue begins. A journal compares it with the monotonic clock, so
  // with a journal it begins with that clock. Otherwise it begins long before, and a test can
  // advance it by more than the longest delay.
  static Time begin_of_time(const Settings& settings);

  // The functions of the server that it calls.
  struct Events {
    std::function<void()> end_drain;  // a reset has found drain mode
    std::function<void()> stop;       // the control connection has ended
  };

  // `loop` and `service` outlive it.
  TestServer(loop::Loop& loop, commands::Service& service, TestModeOptions options, Events events);

  // The queue is recovered, and no client is connected: loads the first jobs and opens the control
  // connection. The error is one line.
  Result<void> begin(serving::Clients& clients, serving::ClientHost& host);
  // Announces the addresses of the listeners. The error is one line.
  Result<void> announce(const std::string& addresses) const;

 private:
  Result<void> preload();

  loop::Loop& loop_;
  TestModeOptions options_;
  test_mode::TestMode mode_;
  loop::Timer stop_timer_;
};

}  // namespace tubed::server
