// The server under test, as a transcript's player sees it: connections, time and signals.
//
// A driver keeps one connection of its own open, made before any client's; it sends nothing that
// any counter of `stats` counts. So `current-connections` is one more than the transcript's
// clients on every driver.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/time.h"
#include "tests/wire/transcript.h"

namespace tubed::wire {

// What a client got. Fewer bytes than asked for and not closed: the driver's limit was over.
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

  // Hands the bytes to the server as one piece. Those sent after the server has closed are lost.
  virtual void send(Client client, std::string_view bytes) = 0;

  // Waits for at least `min_bytes` more than earlier calls returned, for the end of the stream, or
  // until the driver's limit is over, and returns all that has come since the last call.
  // min_bytes 0 never waits.
  virtual Received receive(Client client, std::size_t min_bytes) = 0;

  // The client will send nothing more, but still reads.
  virtual void half_close(Client client) = 0;

  // The client is gone.
  virtual void close(Client client) = 0;

  // Returns when the server has dealt with all that was done before: what it then owes, receive()
  // returns without waiting. The player calls it before another client acts.
  virtual void settle() = 0;

  // Lets time pass; what became due has happened when it returns.
  virtual void advance(Duration time) = 0;

  // Begins or ends drain mode.
  virtual void drain(bool on) = 0;
};

}  // namespace tubed::wire
