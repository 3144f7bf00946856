// Endpoint: what operators ask over HTTP: /metrics, /healthz and /readyz.
//
// It answers from the loop, so that an answer shows that the loop turns. It changes nothing.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "commands/service.h"
#include "loop/http_server.h"
#include "os/log.h"

namespace tubed::server {

// What the endpoint asks of the server.
class EndpointHost {
 public:
  // A question is an event like any other: the time is read, and what is due is done.
  virtual void begin_tick() = 0;
  // In a few words why this takes no new work; empty: it does.
  virtual std::string_view unready() const = 0;

 protected:
  ~EndpointHost() = default;
};

class Endpoint final : public loop::HttpOwner {
 public:
  // All that is referred to outlives the endpoint.
  Endpoint(loop::Loop& loop, os::Log& log, const commands::Service& service, EndpointHost& host)
      : log_(log), service_(service), host_(host), http_(loop, *this) {}

  // Answers on this socket too. `path`: to be removed at the end, or empty.
  void listen(os::Socket socket, const std::string& path) { http_.listen(std::move(socket), path); }

 private:
  loop::HttpResponse answer(std::string_view path) override;
  void on_http_trouble(const std::string& reason) override;
  loop::HttpResponse metrics();

  os::Log& log_;
  const commands::Service& service_;
  EndpointHost& host_;
  loop::HttpServer http_;
};

}  // namespace tubed::server
