// ClusterAdmin: the socket on which operators inspect and change the cluster, over HTTP: GET
// /cluster, and POST /cluster/add, /cluster/remove and /cluster/transfer with a JSON object.
//
// It is a unix socket: permission to connect is permission to change the cluster. It never serves
// clients of the queue.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "cluster/control.h"
#include "config/listen.h"
#include "loop/http_server.h"
#include "os/log.h"
#include "stats/cluster.h"

namespace tubed::node {

class ClusterAdminHost {
 public:
  // Called once, within the call or later.
  using Answer = std::function<void(const cluster::Response&)>;

  // Called first for each request.
  virtual void begin_tick() = 0;
  virtual const stats::ClusterState& cluster_state() = 0;
  // Changes the cluster, on this node or through the leader.
  virtual void change(const cluster::Request& request, Answer answer) = 0;

 protected:
  ~ClusterAdminHost() = default;
};

class ClusterAdmin final : private loop::HttpOwner {
 public:
  // All referenced arguments outlive the object.
  ClusterAdmin(loop::Loop& loop, os::Log& log, ClusterAdminHost& host);

  // Opens the socket. The error is one line.
  Result<void> listen(const Listen& address, std::uint32_t backlog);

 private:
  class Change;

  loop::HttpReply respond(const loop::HttpRequest& request) override;
  void on_http_error(const std::string& reason) override;
  void on_handshake_failed(const std::string& /*peer*/, std::string_view /*reason*/) override {}

  os::Log& log_;
  ClusterAdminHost& host_;
  loop::HttpServer http_;
};

}  // namespace tubed::node
