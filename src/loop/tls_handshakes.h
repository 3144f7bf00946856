// TlsHandshakes: the connections of TLS listeners until their handshakes are done.
//
// A handshake costs a private-key operation of up to milliseconds, and a client can delay each
// step. So steps are queued in the order in which they become runnable and run for kWorkPerTick in
// each iteration of the loop. pending_connections.h has the limits.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "base/time.h"
#include "loop/pending_connections.h"
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

class TlsHandshakes {
 public:
  static constexpr Duration kWorkPerTick = std::chrono::milliseconds(1);

  // `loop` outlives it.
  explicit TlsHandshakes(Loop& loop);
  ~TlsHandshakes();

  // Sets the limits, which also apply to handshakes under way.
  void set_limits(const HandshakeLimits& limits);

  // Takes an accepted connection. Returns false if it cannot be watched; it is then closed. `owner`
  // outlives the handshake or calls forget(). `proxied`: what a proxy has reported. O(1).
  bool begin(os::Socket socket, std::shared_ptr<const TlsContext> context, TlsOwner& owner,
             ProxiedClient proxied = {});
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

  Loop& loop_;
  PendingConnections<Entry> entries_;
  std::list<Entry*> runnable_;
  Handle<uv_idle_t> idle_;
};

}  // namespace tubed::loop
