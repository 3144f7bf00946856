// HttpServer: a small HTTP/1.1 server in the loop. It answers GET and HEAD, one request on each
// connection; its owner makes the responses. It owns its listeners and, through libmicrohttpd, its
// connections. Work per tick: O(connections), and kBytesPerTick bytes of streamed responses.
//
// Invariant: at most kMaxConnections connections are open; further connections wait in the kernel.
// No connection is older than `total_timeout` by more than a second.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "loop/bridge.h"
#include "loop/listener.h"
#include "loop/loop.h"
#include "loop/timer.h"
#include "loop/tls_handshakes.h"

struct MHD_Daemon;

namespace tubed::loop {

struct HttpResponse {
  unsigned status = 200;
  const char* content_type = "text/plain; charset=utf-8";
  std::string text = {};
  // A streamed response has this function instead of `text`. It appends the next part, at most
  // `bytes` bytes, and returns true; or it returns false: the response is complete. It is called in
  // later ticks, and destroyed when the response is sent or the connection is closed.
  std::function<bool(std::size_t bytes, std::string& text)> next_part = {};
};

class HttpOwner {
 public:
  // Returns the response to a GET of `path`, which has no query. For a HEAD only its header is
  // sent.
  virtual HttpResponse respond(std::string_view path) = 0;
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

  // --- For the callbacks of libmicrohttpd

  HttpResponse respond(std::string_view path) { return owner_.respond(path); }
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
