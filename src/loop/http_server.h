// HttpServer: a small HTTP/1.1 server in the loop. It answers GET and HEAD, one request on each
// connection; its owner makes the responses. It owns its listeners and, through libmicrohttpd, its
// connections. Work per tick: O(connections), and kBytesPerTick bytes of streamed responses.
//
// Invariant: at most kMaxConnections connections are open; further connections wait in the kernel.
// No connection is older than `total_timeout` by more than a second.
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
#include "loop/http_exchange.h"
#include "loop/http_request.h"
#include "loop/listener.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "loop/tls_handshakes.h"

struct MHD_Daemon;

namespace tubed::loop {

using HttpReply = std::variant<HttpResponse, std::unique_ptr<HttpExchange>>;

class HttpOwner {
 public:
  // Answers a request whose header is complete, of any method; its body, if any, has not been read.
  // With an HttpResponse the body is not read at all: the connection is closed after the response.
  // For a HEAD only the header of the response is sent.
  virtual HttpReply respond(const HttpRequest& request) = 0;
  // Connections could not be accepted; `reason` is the text of the error.
  virtual void on_http_error(const std::string& reason) = 0;
  // A connection from `peer` was closed before its TLS handshake was done.
  virtual void on_handshake_failed(const std::string& peer, std::string_view reason) = 0;

 protected:
  ~HttpOwner() = default;
};

class HttpServer final : public ListenerOwner, public TlsOwner {
 public:
  static constexpr std::size_t kMaxConnections = 128;
  // Streamed responses that are sent at the same time; the other connections are for texts.
  static constexpr std::size_t kMaxStreams = 16;
  // Exchanges at the same time, without event streams, and event streams (HttpExchange::is_stream)
  // at the same time. The owner refuses further ones (503).
  static constexpr std::size_t kMaxExchanges = 64;
  static constexpr std::size_t kMaxEventStreams = 16;
  // Bytes of all streamed responses that are made in one tick.
  static constexpr std::size_t kBytesPerTick = 32 * 1024;

  // A connection is closed when no byte has moved for `idle_timeout`, which is rounded up to whole
  // seconds, or `total_timeout` after it was accepted. `loop` and `owner` outlive the server.
  HttpServer(Loop& loop, HttpOwner& owner, Duration idle_timeout = std::chrono::seconds(10),
             Duration total_timeout = std::chrono::seconds(60));
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Serves the connections of a listening socket. `path`: the path of a unix socket, which is
  // removed with the server; otherwise empty.
  void listen(os::Socket socket, std::string path);

  // Connections from now on are those of TLS; null: plain.
  void set_tls(std::shared_ptr<const TlsContext> tls);
  void set_handshake_limits(const HandshakeLimits& limits) { handshakes_.set_limits(limits); }

  // O(connections).
  std::size_t exchanges() const { return 0; }
  std::size_t event_streams() const { return 0; }

  // --- For the callbacks of libmicrohttpd

  HttpReply respond(const HttpRequest& request) { return owner_.respond(request); }
  void connection_opened(int descriptor);
  void connection_closed(int descriptor);
  // A request is complete. Called a second time, with true, if its response is streamed.
  void request_received(int descriptor, bool is_streamed);
  // Takes at most `bytes` bytes from what one streamed response may still make in this tick.
  std::size_t take_budget(std::size_t bytes);

 private:
  struct StopDaemon {
    void operator()(MHD_Daemon* daemon) const;
  };

  enum class Progress : std::uint8_t {
    receiving,   // the request is not complete
    responding,  // with a text
    streaming,   // with a streamed response
    ended,       // shut down here; the daemon has not closed it yet
  };
  struct HttpConnection {
    int descriptor;
    Time since;
    Progress progress = Progress::receiving;
  };

  void on_connection(os::Socket socket) override;
  void on_accept_error(const std::string& reason, std::uint64_t refused) override;
  void on_secured(std::unique_ptr<Channel> channel, const TlsPeer& peer) override;
  void on_handshake_failed(const std::string& peer, std::string_view reason) override;
  std::string_view refusal() const;
  void add_to_daemon(os::Socket socket);
  void run_daemon();
  void set_work_pending(bool pending);
  void shut_down(HttpConnection& connection);
  void shut_down_oldest(Progress progress);
  void shut_down_overdue();
  void arm_total_timer();
  std::size_t streams() const;

  Loop& loop_;
  HttpOwner& owner_;
  Duration total_timeout_;
  std::vector<HttpConnection> connections_;  // the oldest first
  std::size_t budget_left_ = 0;              // bytes, of this tick
  std::shared_ptr<const TlsContext> tls_;
  TlsHandshakes handshakes_;
  std::list<std::unique_ptr<Bridge>> bridges_;  // between TLS and the daemon
  std::vector<std::unique_ptr<Listener>> listeners_;
  Timer total_timer_;  // outlives the daemon, which reports the end of its last connections
  std::unique_ptr<MHD_Daemon, StopDaemon> daemon_;
  Timer daemon_timer_;
  bool work_pending_ = false;
  // Destroyed before the daemon closes the descriptor that `events_` watches.
  Handle<uv_idle_t> idle_;
  Handle<uv_poll_t> events_;
};

}  // namespace tubed::loop
