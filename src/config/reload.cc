// The comparison goes row by row through get(), so a new setting takes part without a change here.
#include "config/reload.h"

#include <algorithm>
#include <string_view>

#include "config/cluster_check.h"
#include "config/table.h"

namespace tubed {

ReloadPlan plan_reload(const Settings& current, const Settings& fresh) {
  ReloadPlan plan;
  plan.next = current;
  for (const auto& row : config::settings_table()) {
    const auto value = row.get(fresh);
    if (value == row.get(current)) continue;
    if (row.reloadable) row.set(plan.next, value);
    (row.reloadable ? plan.changed : plan.needs_restart).emplace_back(row.key);
  }
  // A change of cluster.name waits for a restart, and so does what a cluster does not allow.
  if (plan.next.cluster.enabled() && plan.next.queue.job_bytes > kMaxClusterJobBytes) {
    plan.next.queue.job_bytes = current.queue.job_bytes;
    std::erase(plan.changed, "limits.job_bytes");
    plan.needs_restart.emplace_back("limits.job_bytes");
  }
  // So does the end of the secret and of TLS: the node keeps the address that needs them.
  if (config::is_exposed(plan.next.cluster) && !config::is_exposed(current.cluster)) {
    plan.next.cluster.secret_file = current.cluster.secret_file;
    plan.next.cluster.tls = current.cluster.tls;
    for (const std::string_view key :
         {"cluster.secret_file", "cluster.tls.certificate", "cluster.tls.key", "cluster.tls.ca"}) {
      if (std::erase(plan.changed, key) != 0) plan.needs_restart.emplace_back(key);
    }
  }
  if (fresh.policies != current.policies) {
    plan.next.policies = fresh.policies;
    plan.changed.emplace_back("policy");
  }
  if (fresh.roles != current.roles) {
    plan.next.roles = fresh.roles;
    plan.changed.emplace_back("role");
  }
  if (fresh.listeners != current.listeners) {
    const bool same_sockets = std::ranges::equal(fresh.listeners, current.listeners, same_socket);
    if (same_sockets) plan.next.listeners = fresh.listeners;
    (same_sockets ? plan.changed : plan.needs_restart).emplace_back("listen");
  }
  return plan;
}

}  // namespace tubed
