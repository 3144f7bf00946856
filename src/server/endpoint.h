// Endpoint: what operators ask over HTTP: /metrics, /healthz and /readyz.
//
// It answers from the loop, so that an answer shows that the loop turns. It changes nothing.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "commands/service.h"
#include "platform/http_server.h"
#include "platform/log.h"

namespace tubed::server {

// What the endpoint asks of the server.
class EndpointHost {
 public:
  // A question is an event like any other: the time is read, and what is due is done.
  virtual void begin_turn() = 0;
  // In a few words why this takes no new work; empty: it does.
  virtual std::string_view unready() const = 0;

 protected:
  ~EndpointHost() = default;
};

class Endpoint final : public platform::HttpOwner {
 public:
  // All that is referred to outlives the endpoint.
  Endpoint(platform::Loop& loop, platform::Log& log, const commands::Service& service,
           EndpointHost& host)
      : log_(log), service_(service), host_(host), http_(loop, *this) {}

  // Answers on this socket too. `path`: to be removed at the end, or empty.
  void listen(platform::Socket socket, const std::string& path) {
    http_.listen(std::move(socket), path);
  }

 private:
  platform::HttpResponse answer(std::string_view path) override;
  void on_http_trouble(const std::string& reason) override;
  platform::HttpResponse metrics();

  platform::Log& log_;
  const commands::Service& service_;
  EndpointHost& host_;
  platform::HttpServer http_;
};

}  // namespace tubed::server
