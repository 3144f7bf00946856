// HttpServer: an HTTP/1.1 server in the loop. Its owner answers each request with a response or an
// exchange (http_exchange.h). The server owns its listeners and, through libmicrohttpd, its
// connections with their exchanges. Work per tick and per request: O(connections), and
// kBytesPerTick bytes of responses in parts per tick.
//
// Invariant: at most kMaxConnections connections are open, not counting connections that were shut
// down and connections whose exchanges wait (HttpExchange::begin_waiting); further connections wait
// in the kernel. At most kMaxKept connections stay open after a response, for the next request.
// Except for event streams, no request exceeds `total_timeout` by more than a second, counted from
// the response before it.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.h"
#include "loop/bridge.h"
#include "loop/http_daemon.h"
#include "loop/http_exchange.h"
#include "loop/http_request.h"
#include "loop/lingering_close.h"
#include "loop/listener.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "loop/tls_handshakes.h"

struct MHD_Connection;

namespace tubed::loop {

using HttpReply = std::variant<HttpResponse, std::unique_ptr<HttpExchange>>;

class HttpOwner {
 public:
  // Answers a request of any method whose header is complete and whose body has not been read. With
  // an HttpResponse the body is never read: the connection is closed after the response. For a HEAD
  // only the header of the response is sent.
  virtual HttpReply respond(const HttpRequest& request) = 0;
  // Accepting connections has failed; `reason` is the text of the error.
  virtual void on_http_error(const std::string& reason) = 0;
  // The connection from `peer` was closed before its TLS handshake was done.
  virtual void on_handshake_failed(const std::string& peer, std::string_view reason) = 0;

 protected:
  ~HttpOwner() = default;
};

class HttpServer final : public ListenerOwner, public TlsOwner {
 public:
  static constexpr std::size_t kMaxConnections = 128;
  // The limit on concurrent streamed responses (HttpResponse::next_part); a further one aborts the
  // oldest.
  static constexpr std::size_t kMaxStreams = 16;
  // Limits on the counts of exchanges(), event_streams() and waits(). The owner refuses further
  // requests (503).
  static constexpr std::size_t kMaxExchanges = 64;
  static constexpr std::size_t kMaxEventStreams = 16;
  static constexpr std::size_t kMaxWaits = 1000;
  // Bytes per tick that all responses in parts make together.
  static constexpr std::size_t kBytesPerTick = 32 * 1024;
  // How often suspended connections are checked for disconnected clients.
  static constexpr Duration kCheckInterval = std::chrono::milliseconds(500);

  static constexpr std::chrono::seconds kIdleTimeout{10};  // until set_timeouts()

  // Connections that stay open for further requests, and requests of such a connection.
  static constexpr std::size_t kMaxKept = 96;
  static constexpr std::uint32_t kMaxRequests = 1000;

  // `loop` and `owner` outlive the server.
  HttpServer(Loop& loop, HttpOwner& owner);
  // Destroys all exchanges.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Serves the connections of a listening socket. `path` is the path of a unix socket, which is
  // removed with the server, or empty.
  void listen(os::Socket socket, std::string path);

  // Applies to later connections; null: no TLS.
  void set_tls(std::shared_ptr<const TlsContext> tls);
  void set_handshake_limits(const HandshakeLimits& limits) { handshakes_.set_limits(limits); }

  // Sets TCP_NODELAY and keepalive of the later connections; see os::tune_connection().
  void tune(Duration keepalive_idle);

  // Keeps connections open after a response, until no byte has moved for `idle`. Zero, the initial
  // value, closes each after its response, and at once those that wait for a request.
  void set_keep_alive(std::chrono::seconds idle);
  // Closes a connection if no byte has moved for `idle`, except while an exchange waits, or `total`
  // after it was accepted or its last response was sent. The timeouts also apply to open
  // connections.
  void set_timeouts(std::chrono::seconds idle, Duration total);

  // Counts that exclude the request that the owner is being asked to answer. O(connections).
  std::size_t exchanges() const;  // neither event streams nor waits
  std::size_t event_streams() const;
  std::size_t waits() const { return waits_; }

  // --- For HttpConnection

  HttpReply respond(const HttpRequest& request) { return owner_.respond(request); }
  // Another response is streamed.
  void stream_begun();
  // Another exchange waits.
  void wait_begun();
  // Its connection stays open.
  void wait_ended() { --waits_; }
  std::chrono::seconds keep_alive() const { return keep_alive_; }
  std::chrono::seconds idle_timeout() const { return idle_timeout_; }
  // `is_kept`: the connection has a place already.
  bool may_keep(bool is_kept) const;
  void connection_kept() { ++kept_; }
  // The response was sent, and the connection waits for a request.
  void request_ended(const HttpConnection& connection);
  // Returns how many of `bytes` bytes a response may make now.
  std::size_t budget_for(std::size_t bytes) const;
  void spend(std::size_t bytes) { budget_left_ -= bytes; }
  void connection_suspended();
  void connection_resumed() { daemon_.note_resumed(); }

  // --- For the callbacks of libmicrohttpd

  // Records that libmicrohttpd has called back and thus makes progress.
  void note_call() { daemon_.note_call(); }
  HttpConnection* connection_opened(MHD_Connection* handle, int descriptor);
  void connection_closed(HttpConnection* connection);

 private:
  void on_connection(os::Socket socket) override;
  void on_accept_error(const std::string& reason, std::uint64_t refused) override;
  void on_secured(std::unique_ptr<Channel> channel, const TlsPeer& peer) override;
  void on_handshake_failed(const std::string& peer, std::string_view reason) override;
  std::string_view refusal() const;
  bool is_full() const { return connections_.size() - waits_ >= kMaxConnections; }
  void add_to_daemon(os::Socket socket, HttpPeer peer, std::weak_ptr<const Bridge> bridge = {});
  void make_room();
  void shut_down_overdue();
  void arm_total_timer();
  void check_suspended();
  void linger(int descriptor);

  Loop& loop_;
  HttpOwner& owner_;
  std::chrono::seconds idle_timeout_ = kIdleTimeout;
  Duration total_timeout_ = std::chrono::seconds(60);
  std::chrono::seconds keep_alive_{0};
  std::size_t kept_ = 0;
  std::vector<std::unique_ptr<HttpConnection>> connections_;  // in the order of since()
  std::size_t waits_ = 0;                                     // connections whose exchanges wait
  HttpPeer opening_peer_;                       // of the connection being given to the daemon
  std::weak_ptr<const Bridge> opening_bridge_;  // of the same connection
  std::size_t budget_left_ = 0;                 // bytes, of this tick
  std::shared_ptr<const TlsContext> tls_;
  TlsHandshakes handshakes_;
  std::list<std::shared_ptr<Bridge>> bridges_;            // between TLS and the daemon
  std::list<std::unique_ptr<LingeringClose>> lingering_;  // oldest first
  std::vector<std::unique_ptr<Listener>> listeners_;
  bool stopping_ = false;
  // The timers outlive the daemon, which reports the end of its last connections.
  Timer total_timer_;
  Timer check_timer_;
  bool checks_suspended_ = false;
  HttpDaemon daemon_;
};

}  // namespace tubed::loop
