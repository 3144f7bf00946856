#include "serving/not_serving.h"

#include <fmt/format.h>

namespace tubed::serving {

using stats::ClusterRole;

std::string_view not_serving_reason(const stats::ClusterState& cluster) {
  if (cluster.role == ClusterRole::waiting) return "waits to be added";
  if (cluster.role == ClusterRole::fetching) return "fetches the state";
  if (cluster.role == ClusterRole::leader) return "was just elected";
  return cluster.leader.empty() ? "no leader" : "not the leader";
}

std::string not_serving_detail(const stats::ClusterState& cluster) {
  const auto because = [](std::string_view reason) {
    return fmt::format("This node of a cluster does not serve clients. {}", reason);
  };
  if (cluster.role == ClusterRole::waiting) return because("It waits to be added.");
  if (cluster.role == ClusterRole::leader) return because("It was just elected.");
  if (!cluster.leader.empty()) return because(fmt::format("The leader is {}.", cluster.leader));
  if (cluster.role == ClusterRole::fetching) return because("It fetches the state.");
  return because("There is no leader.");
}

}  // namespace tubed::serving
