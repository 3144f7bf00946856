// TlsHandshakes: the connections of TLS listeners until their handshakes are done.
//
// A handshake costs a private-key operation of up to milliseconds, and a client can delay each
// step. So steps are queued in the order in which they become runnable and run for kWorkPerTick in
// each iteration of the loop. A handshake must be done within a time limit, and when too many are
// under way, the oldest is closed: an honest client needs only a few round trips.
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

  // Sets the limits, which also apply to handshakes under way.
  void set_limits(const HandshakeLimits& limits);

  // Takes an accepted connection. Returns false if it cannot be watched; it is then closed. `owner`
  // outlives the handshake or calls forget(). O(1).
  bool begin(os::Socket socket, std::shared_ptr<const TlsContext> context, TlsOwner& owner);
  // Closes the connections that this owner has begun. O(pending).
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
  std::list<std::unique_ptr<Entry>> entries_;  // oldest first
  std::list<Entry*> runnable_;
  Timer deadline_;
  Handle<uv_idle_t> idle_;
};

}  // namespace tubed::loop
