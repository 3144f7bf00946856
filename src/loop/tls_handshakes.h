// TlsHandshakes: the connections of TLS listeners until their handshakes are done.
//
// A handshake costs a private-key operation, up to milliseconds, and a client can make the server
// wait between its steps. So the steps are queued and run for kWorkPerTick in each iteration of the
// loop, in the order in which they can go on; a handshake has to be done within a time limit; and
// when more than a bound are under way, the oldest is closed: an honest client needs some
// round trips only.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "base/time.h"
#include "loop/timer.h"
#include "loop/tls_channel.h"

namespace tubed::loop {

// The owner of a listener with TLS.
class TlsOwner {
 public:
  // The handshake is done. Input may have arrived with it: the first want() reports that.
  virtual void on_secured(std::unique_ptr<Channel> channel, const TlsPeer& peer) = 0;
  // A connection from `peer` was closed before it was secured.
  virtual void on_handshake_failed(const std::string& peer, std::string_view reason) = 0;

 protected:
  ~TlsOwner() = default;
};

struct HandshakeLimits {
  Duration timeout = std::chrono::seconds(10);
  std::size_t pending = 1024;
};

class TlsHandshakes {
 public:
  static constexpr Duration kWorkPerTick = std::chrono::milliseconds(1);

  // `loop` outlives it.
  explicit TlsHandshakes(Loop& loop);
  ~TlsHandshakes();

  // The limits apply to handshakes that have begun, too.
  void set_limits(const HandshakeLimits& limits);

  // Takes an accepted connection. False: it cannot be watched, and is closed. `owner` outlives the
  // handshake, or calls forget(). O(1).
  bool begin(os::Socket socket, std::shared_ptr<const TlsContext> context, TlsOwner& owner);
  // Closes what this owner has begun. O(pending).
  void forget(const TlsOwner& owner);

  std::size_t pending() const { return entries_.size(); }

 private:
  struct Entry;

  void queue(Entry& entry);
  void run_queued();
  void step(Entry& entry);
  void fail(Entry& entry, std::string_view reason);
  std::unique_ptr<Entry> take(Entry& entry);
  void close_overdue();
  void arm_deadline();

  Loop& loop_;
  HandshakeLimits limits_;
  std::list<std::unique_ptr<Entry>> entries_;  // the oldest first
  std::list<Entry*> runnable_;
  Timer deadline_;
  Handle<uv_idle_t> idle_;
};

}  // namespace tubed::loop
