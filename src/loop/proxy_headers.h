// ProxyHeaders: the connections of proxies until the header of the PROXY protocol has arrived
// (proxy_header.h). Bytes after the header stay unread: they belong to the client, or to its TLS
// handshake.
//
// The limits are those of TLS handshakes (pending_connections.h). A proxy sends its header at once.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "loop/loop.h"
#include "loop/pending_connections.h"
#include "loop/proxy_header.h"
#include "os/socket.h"

namespace tubed::loop {

// The owner of a listener for proxies.
class ProxyOwner {
 public:
  // The header has arrived; the client's bytes may have arrived with it.
  virtual void on_proxied(os::Socket socket, ProxiedClient client) = 0;
  // The connection from `peer`, a proxy, was closed before its header was complete.
  virtual void on_header_failed(const std::string& peer, std::string_view reason) = 0;

 protected:
  ~ProxyOwner() = default;
};

class ProxyHeaders {
 public:
  // `loop` outlives it.
  explicit ProxyHeaders(Loop& loop);
  ~ProxyHeaders();

  // Sets the limits, which also apply to connections that it has.
  void set_limits(const HandshakeLimits& limits);

  // Takes an accepted connection; `peer`: its os::peer_address(). Returns false if it cannot be
  // watched; it is then closed. `owner` outlives the connection or calls forget(). O(1).
  bool begin(os::Socket socket, std::string peer, ProxyOwner& owner);
  // Closes the connections that this owner has begun. O(pending).
  void forget(const ProxyOwner& owner);

  std::size_t pending() const { return entries_.size(); }

 private:
  struct Entry;

  static void on_poll(uv_poll_t* handle, int status, int events);
  void read(Entry& entry, bool is_lost);
  void fail(Entry& entry, std::string_view reason);
  std::unique_ptr<Entry> take(Entry& entry);

  Loop& loop_;
  PendingConnections<Entry> entries_;
};

}  // namespace tubed::loop
