// BlockingStream: a connection, with or without TLS, for blocking reads and writes on one thread,
// with a time limit for each step.
//
// interrupt() may be called by any thread while the stream exists. All other functions belong to
// the thread that uses the stream. Errors are one line without the peer's name.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "loop/connection.h"
#include "os/descriptor.h"

namespace tubed::loop {

class BlockingStream {
 public:
  // `timeout`: how long a step may make no progress, and how long the whole handshake of TLS may
  // take. If the process has no free descriptor, the first step fails.
  explicit BlockingStream(Duration timeout);
  // Takes over a connection.
  BlockingStream(Connection connection, Duration timeout);

  // Connects to a numeric address. Precondition: not connected.
  Result<void> connect(const std::string& host, std::uint16_t port);
  // Makes the handshake of TLS as the client. Precondition: connected, and nothing was read or
  // written.
  Result<TlsPeer> secure(std::shared_ptr<const TlsContext> context);
  Result<void> write(std::string_view bytes);
  // Fills `bytes`.
  Result<void> read(std::span<char> bytes);

  // Makes the current step and all later steps fail at once.
  void interrupt();
  bool interrupted() const { return interrupted_; }

 private:
  Result<void> wait(short events) const;
  Result<bool> is_ready_by(Time deadline, short events) const;
  short awaited(short events) const;

  const Duration timeout_;
  Connection connection_;
  os::Descriptor event_;  // readable once interrupted
  std::atomic<bool> interrupted_ = false;
};

}  // namespace tubed::loop
