// ClusterMode: a server as a node of a cluster, as the rest of the server sees it.
//
// A server without a [cluster] section has none: the pointer in Server is null. A program without
// libraft cannot have one (no_cluster.cc).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "commands/service.h"
#include "config/settings.h"
#include "loop/loop.h"
#include "os/log.h"
#include "serving/clients.h"
#include "serving/scheduler.h"
#include "stats/cluster.h"

namespace tubed::node {

// The parts of the server that a node works on. They outlive it.
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
  // It serves clients from now on, or no longer does.
  virtual void role_changed() = 0;
  // The process is to end with this exit code; the reason is logged. Nothing may be acknowledged.
  virtual void cluster_failed(int exit_code) = 0;
  // The node was removed from the cluster, and the server is to stop.
  virtual void removed_from_cluster() = 0;

 protected:
  ~ClusterHost() = default;
};

class ClusterMode {
 public:
  virtual ~ClusterMode() = default;

  // Opens the sockets for other nodes and for operators. The error is one line.
  virtual Result<void> listen() = 0;
  // Restores the state of the node, if it has one, and takes part in the cluster from now on.
  // Blocks for as long as reading the state takes. The error is one line.
  virtual Result<void> start() = 0;

  // Clients are served. Otherwise their connections are closed.
  virtual bool serves() const = 0;
  // The cluster as this node sees it now. Valid until the next call. O(members).
  virtual const stats::ClusterState& state() = 0;

  // Settings in force from now on, after a reload.
  virtual void apply(const Settings& settings) = 0;

  // The server is about to stop: passes leadership to another node. False: nothing is to be
  // passed on. True: `done` is called when another node leads or that has failed; clients are
  // closed by then if it has succeeded.
  virtual bool hand_over(std::function<void()> done) = 0;
};

// `host` outlives it. The error: this program has no cluster mode.
Result<std::unique_ptr<ClusterMode>> make_cluster_mode(const ClusterParts& parts,
                                                       const Settings& settings, ClusterHost& host);

}  // namespace tubed::node
