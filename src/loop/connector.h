// Connector: makes one TCP connection to a numeric address, without blocking the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "loop/channel.h"
#include "loop/timer.h"

namespace tubed::loop {

struct ConnectOptions {
  Duration limit = std::chrono::seconds(1);  // for connecting
  // How long sent bytes may be unacknowledged before the connection is lost. Zero: the system's
  // default.
  Duration user_timeout = {};
  Duration keepalive_idle = std::chrono::seconds(10);
};

class Connector {
 public:
  // The connection, with TCP_NODELAY, or one line with the address and the reason.
  using Done = std::function<void(Result<std::unique_ptr<Channel>>)>;

  // Calls `done` once, in a later event of the loop; `done` may destroy the connector. Destroying
  // the connector earlier cancels the attempt. `loop` outlives the connector.
  Connector(Loop& loop, const std::string& host, std::uint16_t port, const ConnectOptions& options,
            Done done);
  ~Connector();
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

 private:
  static void on_poll(uv_poll_t* handle, int status, int events);
  void attempt(const std::string& host, std::uint16_t port);
  void finish(Result<std::unique_ptr<Channel>> result);
  Error failure(const std::string& reason) const;
  void stop_watching();

  Loop& loop_;
  const ConnectOptions options_;
  Done done_;
  std::string address_;  // for errors
  std::string failed_;   // an immediate failure, which the timer reports
  os::Socket socket_;
  Timer timer_;
  Handle<uv_poll_t> handle_;  // destroyed before `socket_`, which it watches
};

}  // namespace tubed::loop
