#include "server/status.h"

#include <fmt/format.h>

#include "serving/not_serving.h"

namespace tubed::server {

using stats::ClusterRole;

namespace {

std::string_view state(const commands::Service& service, const Lifecycle& lifecycle) {
  if (lifecycle.drain_timed_out()) return "drain.timeout is over";
  if (lifecycle.drained()) return "drained";
  // Version 2.0.0 has the status "stopping" after a drain too (drain.h).
  if (lifecycle.phase() >= Phase::closing) return "stopped";
  if (lifecycle.stopping()) return "stopping";
  if (service.draining()) return "draining";
  if (service.log().stats().full) return "refusing puts, the journal has no space";
  if (service.engine().memory().is_short()) return "refusing puts, limits.job_memory is reached";
  return service.host().cluster() == nullptr ? "serving" : "leading";
}

// Of a node that has a queue.
std::string state_of_node(const stats::ClusterState& cluster) {
  if (cluster.role == ClusterRole::leader) return "elected";
  if (cluster.leader.empty()) return "looking for a leader";
  const bool is_standby = cluster.role == ClusterRole::standby;
  return fmt::format("{} {}", is_standby ? "catching up with" : "following", cluster.leader);
}

std::string fetch_status(const stats::ClusterState& cluster) {
  constexpr std::uint64_t kMiB = 1 << 20;
  if (cluster.fetch_bytes == 0)
    return fmt::format("fetching the state: {} MiB", cluster.fetched_bytes / kMiB);
  return fmt::format("fetching the state: {} of {} MiB", cluster.fetched_bytes / kMiB,
                     (cluster.fetch_bytes + kMiB - 1) / kMiB);
}

}  // namespace

std::string status_line(const commands::Service& service, const Lifecycle& lifecycle,
                        std::size_t connections) {
  const auto jobs = service.engine().info().jobs;
  if (!service.host().serves() && !lifecycle.stopping()) {
    return fmt::format("{}{}", service.draining() ? "draining, " : "",
                       node_status(*service.host().cluster(), jobs.total()));
  }
  const bool by_drain = lifecycle.drained() || lifecycle.drain_timed_out();
  if (lifecycle.phase() < Phase::closing || !by_drain) {
    return fmt::format("{}: {} ready jobs, {} reserved, {} connections", state(service, lifecycle),
                       jobs.ready, jobs.reserved, connections);
  }
  const std::string how =
      lifecycle.drained()
          ? "drained"
          : fmt::format("drain.timeout is over, {} jobs interrupted", lifecycle.interrupted());
  if (jobs.total() == 0) return how + ": no job is left";
  return fmt::format("{}: {} ready jobs, {} delayed, {} buried {}", how, jobs.ready, jobs.delayed,
                     jobs.buried,
                     service.log().stats().on_disk ? "stay in the journal" : "are lost");
}

std::string_view unready_reason(const commands::Service& service, const Lifecycle& lifecycle) {
  const std::string_view not_leader = not_leader_reason(service, lifecycle);
  if (!not_leader.empty()) return not_leader;
  if (service.draining()) return "draining";
  return service.log().stats().full ? "the journal has no space" : "";
}

std::string_view not_leader_reason(const commands::Service& service, const Lifecycle& lifecycle) {
  if (lifecycle.stopping()) return "stopping";
  return service.host().serves() ? "" : serving::not_serving_reason(*service.host().cluster());
}

std::string node_status(const stats::ClusterState& cluster, std::uint64_t jobs) {
  if (cluster.role == ClusterRole::waiting) return "waiting to be added to a cluster";
  if (cluster.role == ClusterRole::fetching) return fetch_status(cluster);
  return fmt::format("{}: {} jobs, applied entry {}", state_of_node(cluster), jobs,
                     cluster.applied);
}

}  // namespace tubed::server
