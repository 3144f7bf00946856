#include "api/cluster_json.h"

#include <optional>
#include <string>
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

// Null unless the value is known. With a conditional expression at each place, g++ 12 warns that
// members of a Json are not initialized, though no path reads them.
Json known_if(bool known, Json value) {
  if (known) return value;
  return {};
}

Json text_json(const std::string& text) {
  return known_if(!text.empty(), text);
}

Json time_json(std::optional<Duration> duration) {
  return known_if(duration.has_value(), in_milliseconds(duration.value_or(Duration::zero())));
}

Json member_json(const stats::ClusterNode& node) {
  return {{"name", node.name},
          {"id", stats::id_text(node.id)},
          {"address", node.address},
          {"votes", node.votes},
          {"leads", node.leads},
          {"self", node.is_self},
          {"match", known_if(node.match.has_value(), node.match.value_or(0))},
          {"silent_ms", time_json(node.silence)},
          {"level", known_if(node.level > 0, node.level)},
          {"failure", text_json(node.failure)},
          {"lag_ms", time_json(node.lag)},
          {"stays", node.stays},
          {"clock_difference_ms", time_json(node.clock_difference)},
          {"reached_at", text_json(node.reached_at)}};
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
                      {"leader", text_json(cluster.leader)},
                      {"term", cluster.term},
                      {"committed", cluster.committed},
                      {"applied", cluster.applied},
                      {"stored", cluster.stored},
                      {"lease_ms", known_if(leads, in_milliseconds(cluster.lease))},
                      {"raft_log_bytes", cluster.raft_log_bytes},
                      {"raft_log_limit", cluster.raft_log_limit},
                      {"held_over", cluster.held_over},
                      {"feature_level", cluster.feature_level},
                      {"fetched_bytes", known_if(fetches, cluster.fetched_bytes)},
                      {"fetch_bytes", known_if(fetches_known, cluster.fetch_bytes)},
                      {"members_index", cluster.members_index},
                      {"members", Json::array(std::move(members))},
                      {"settings_differ", Json::array(std::move(differing))}}) +
         '\n';
}

}  // namespace tubed::api
