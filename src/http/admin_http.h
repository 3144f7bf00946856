// AdminHttp: /metrics, /healthz, /readyz and /leader, for operators and load balancers.
//
// The handlers run in the loop: an answer of /healthz shows that the loop makes progress. They
// change nothing. The API and the console are an HttpSite, which gets the requests for its paths.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "commands/service.h"
#include "loop/http_server.h"
#include "os/log.h"

namespace tubed::http {

// The server, as the handlers see it.
class AdminHttpHost {
 public:
  // A request is an event: the first event of a tick reads the clock and does what is due.
  virtual void begin_tick() = 0;
  // Returns why the server accepts no new jobs, in a few words; empty if it accepts them.
  virtual std::string_view unready() const = 0;
  // Returns why clients are not served here, in a few words; empty if they are: the server leads
  // its cluster, or is in no cluster.
  virtual std::string_view not_leader() const = 0;
  // A connection from `address` was closed before its TLS handshake was done.
  virtual void on_handshake_failed(const std::string& address, std::string_view reason) = 0;

 protected:
  ~AdminHttpHost() = default;
};

// The other paths of HTTP: the API and the console.
class HttpSite {
 public:
  // True if the path belongs to the site. Here and in the next two, a tick has begun.
  virtual bool serves(std::string_view path) const = 0;
  // Answers a request for such a path, which `server` has received.
  virtual loop::HttpReply respond(const loop::HttpRequest& request,
                                  const loop::HttpServer& server) = 0;
  // Returns the answer to a client that may not read /metrics; no value if it may.
  virtual std::optional<loop::HttpReply> refuse_metrics(const loop::HttpRequest& request) = 0;

 protected:
  ~HttpSite() = default;
};

class AdminHttp final : public loop::HttpOwner {
 public:
  // Everything that is passed by reference outlives it.
  AdminHttp(loop::Loop& loop, os::Log& log, const commands::Service& service, AdminHttpHost& host)
      : loop_(loop), log_(log), service_(service), host_(host) {}

  // Serves HTTP on this listening socket too. `path`: the path of a unix socket, removed when the
  // server closes it, or empty.
  void listen(os::Socket socket, const std::string& path);
  // The TLS of the connections to come, of all its listeners; null: plain.
  void set_tls(std::shared_ptr<const loop::TlsContext> tls);
  void set_handshake_limits(const loop::HandshakeLimits& limits);
  // As HttpServer::tune().
  void tune(Duration keepalive_idle);
  // As HttpServer::set_keep_alive().
  void set_keep_alive(std::chrono::seconds idle);
  // Serves the site too. `site` outlives it or its close(). Precondition of listen().
  void set_site(HttpSite& site) { site_ = &site; }
  bool is_listening() const { return http_.has_value(); }
  void close() { http_.reset(); }

 private:
  loop::HttpReply respond(const loop::HttpRequest& request) override;
  void on_http_error(const std::string& reason) override;
  void on_handshake_failed(const std::string& address, std::string_view reason) override {
    host_.on_handshake_failed(address, reason);
  }
  loop::HttpResponse page(std::string_view path);
  loop::HttpResponse metrics();

  loop::Loop& loop_;
  os::Log& log_;
  const commands::Service& service_;
  AdminHttpHost& host_;
  HttpSite* site_ = nullptr;
  std::shared_ptr<const loop::TlsContext> tls_;
  loop::HandshakeLimits handshake_limits_;
  std::chrono::seconds keep_alive_{0};
  std::optional<loop::HttpServer> http_;  // none: no listener is configured
};

}  // namespace tubed::http
