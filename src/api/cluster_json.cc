#include "api/cluster_json.h"

#include <utility>
#include <vector>

#include "json/json.h"

namespace tubed::api {

namespace {

using json::Json;
using std::chrono::milliseconds;

Json in_milliseconds(Duration duration) {
  return duration > Duration::zero() ? Json(duration / milliseconds(1)) : Json(0);
}

Json member_json(const stats::ClusterNode& node) {
  return {{"name", node.name},
          {"id", stats::id_text(node.id)},
          {"address", node.address},
          {"votes", node.votes},
          {"leads", node.leads},
          {"self", node.is_self},
          {"match", node.match ? Json(*node.match) : Json()},
          {"silent_ms", node.silence ? in_milliseconds(*node.silence) : Json()},
          {"level", node.level > 0 ? Json(node.level) : Json()},
          {"failure", node.failure.empty() ? Json() : Json(node.failure)},
          {"lag_ms", node.lag ? in_milliseconds(*node.lag) : Json()},
          {"stays", node.stays},
          {"clock_difference_ms",
           node.clock_difference ? in_milliseconds(*node.clock_difference) : Json()},
          {"reached_at", node.reached_at.empty() ? Json() : Json(node.reached_at)}};
}

Json differing_json(const stats::DifferingSetting& setting) {
  std::vector<Json> groups;
  for (const auto& nodes : setting.nodes)
    groups.push_back(Json::array(std::vector<Json>(nodes.begin(), nodes.end())));
  return {{"name", setting.name}, {"nodes", Json::array(std::move(groups))}};
}

}  // namespace

std::string cluster_json(const stats::ClusterState& cluster) {
  const bool leads = cluster.role == stats::ClusterRole::leader;
  const bool fetches = cluster.role == stats::ClusterRole::fetching;
  const bool fetches_known = fetches && cluster.fetch_bytes > 0;
  std::vector<Json> members;
  members.reserve(cluster.nodes.size());
  for (const stats::ClusterNode& node : cluster.nodes) members.push_back(member_json(node));
  std::vector<Json> differing;
  for (const auto& setting : cluster.differing) differing.push_back(differing_json(setting));
  return to_line(Json{{"name", cluster.name},
                      {"id", stats::id_text(cluster.id)},
                      {"cluster", stats::id_text(cluster.cluster)},
                      {"role", stats::name_of(cluster.role)},
                      {"serves", cluster.serves},
                      {"leader", cluster.leader.empty() ? Json() : Json(cluster.leader)},
                      {"term", cluster.term},
                      {"committed", cluster.committed},
                      {"applied", cluster.applied},
                      {"stored", cluster.stored},
                      {"lease_ms", leads ? in_milliseconds(cluster.lease) : Json()},
                      {"raft_log_bytes", cluster.raft_log_bytes},
                      {"raft_log_limit", cluster.raft_log_limit},
                      {"held_over", cluster.held_over},
                      {"feature_level", cluster.feature_level},
                      {"fetched_bytes", fetches ? Json(cluster.fetched_bytes) : Json()},
                      {"fetch_bytes", fetches_known ? Json(cluster.fetch_bytes) : Json()},
                      {"members_index", cluster.members_index},
                      {"members", Json::array(std::move(members))},
                      {"settings_differ", Json::array(std::move(differing))}}) +
         '\n';
}

}  // namespace tubed::api
