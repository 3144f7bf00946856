// ClusterMode: the node of a cluster, as the rest of the server sees it.
//
// Without a [cluster] section the pointer in Server is null. A program without libraft cannot have
// a ClusterMode (no_cluster.cc).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "commands/service.h"
#include "config/settings.h"
#include "loop/loop.h"
#include "loop/tls_context.h"
#include "os/log.h"
#include "serving/clients.h"
#include "serving/connection_origin.h"
#include "serving/scheduler.h"
#include "stats/cluster.h"

namespace tubed::node {

// The parts of the server that a node uses. They outlive it.
struct ClusterParts {
  loop::Loop& loop;
  os::Log& log;
  commands::Service& service;
  serving::Clients& clients;
  serving::Scheduler& scheduler;
};

// The server around a node, as the node sees it.
class ClusterHost {
 public:
  // The node has begun or ceased to serve clients.
  virtual void role_changed() = 0;
  // The process must end with this exit code; the reason has been logged. Nothing may be
  // acknowledged.
  virtual void cluster_failed(int exit_code) = 0;
  // The node was removed from the cluster, and the server must stop.
  virtual void removed_from_cluster() = 0;
  // Another node has passed on a client, and this node serves. The server may refuse it.
  virtual void on_forwarded(std::unique_ptr<loop::Channel> channel,
                            const serving::ConnectionOrigin& origin) = 0;
  // Closes a connection of a client a moment later.
  virtual void hold(std::unique_ptr<loop::Channel> channel) = 0;

 protected:
  ~ClusterHost() = default;
};

class ClusterMode {
 public:
  virtual ~ClusterMode() = default;

  // Opens the sockets for other nodes and for operators. The error is one line.
  virtual Result<void> listen() = 0;
  // Restores the state of the node, if it has a state, and joins the cluster. Blocks while it reads
  // the state. The error is one line.
  virtual Result<void> start() = 0;

  // True if clients are served.
  virtual bool serves() const = 0;
  // True if clients that are not served are passed to the leader [cluster.clients]. Otherwise their
  // connections are closed.
  virtual bool forwards() const = 0;
  // True if clients are passed to a leader now.
  virtual bool knows_leader() const = 0;
  // Passes a client on. Precondition: forwards().
  virtual void forward(std::unique_ptr<loop::Channel> channel,
                       const serving::ConnectionOrigin& origin) = 0;
  // Returns the number of clients that wait for the leader or are passed to it. O(1).
  virtual std::size_t forwarded() const = 0;
  // Returns the state of the cluster as this node sees it. Valid until the next call. O(members).
  virtual const stats::ClusterState& state() = 0;

  // Reads the files that these settings name, for the next settings_changed(). Returns true if they
  // differ from those in use. The error is one line with the file and the reason.
  virtual Result<bool> read_files(const Settings& settings) = 0;
  // The settings have changed by a reload.
  virtual void settings_changed() = 0;
  // Sets the certificates for later connections with other nodes; null: without TLS [cluster.tls].
  // Precondition: listen() was called.
  virtual void set_tls(std::shared_ptr<const loop::TlsContext> tls) = 0;

  // The server is about to stop: passes leadership to another node, or ends the clients that it
  // passes to the leader. Returns false if it has neither. Otherwise `done` is called when
  // another node leads, with clients already closed, when passing it has failed, or when the last
  // forwarded client has ended.
  virtual bool hand_over(std::function<void()> done) = 0;
};

// Arguments passed by reference outlive the result; `settings` may change before
// settings_changed(). Fails if this program has no cluster mode.
Result<std::unique_ptr<ClusterMode>> make_cluster_mode(const ClusterParts& parts,
                                                       const Settings& settings, ClusterHost& host);

}  // namespace tubed::node
