// The server under test, as the player of a transcript sees it: connections, time and signals.
//
// A driver keeps a connection of its own open, made before any client's; it sends nothing that a
// counter of `stats` counts. So `current-connections` exceeds the transcript's clients by one on
// every driver.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/time.h"
#include "tests/wire/transcript.h"

namespace tubed::wire {

// The input of a client. If it has fewer bytes than requested and is not closed, the driver's time
// limit has expired.
struct Received {
  std::string bytes;
  bool closed = false;  // the stream ends after `bytes`
};

class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  virtual ~Driver() = default;

  // Connects `client`. Clients are opened in the order 0, 1, 2 and so on, each once, before its
  // first use.
  virtual void open(Client client) = 0;

  // Sends the bytes to the server as one piece. Bytes sent after the server has closed are lost.
  virtual void send(Client client, std::string_view bytes) = 0;

  // Waits for at least `min_bytes` of input since the last call, for the end of the stream, or for
  // the driver's time limit; returns all input since the last call. min_bytes 0 never waits.
  virtual Received receive(Client client, std::size_t min_bytes) = 0;

  // Closes the client's sending side; the client still reads.
  virtual void half_close(Client client) = 0;

  // Closes the client's connection.
  virtual void close(Client client) = 0;

  // Waits until the server has processed all earlier calls: receive() then returns all replies to
  // them without waiting. The player calls this before another client acts.
  virtual void wait_until_idle() = 0;

  // Lets time pass. When it returns, all deadlines up to then have taken effect.
  virtual void advance(Duration time) = 0;

  // Begins or ends drain mode.
  virtual void drain(bool on) = 0;
};

}  // namespace tubed::wire
