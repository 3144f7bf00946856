// ClusterMember: clients that this node passes to the leader, and clients of other nodes.
#include <utility>

#include "node/cluster_member.h"
#include "node/forwarded_client.h"

namespace tubed::node {

bool ClusterMember::forwards() const {
  if (forwarder_ == nullptr || forwarder_->ending()) return false;
  if (phase_ != Phase::running && phase_ != Phase::restarting) return false;
  const cluster::NodeId leader =
      phase_ == Phase::running ? node_->node().leader() : cluster::NodeId{0};
  const cluster::Level level = leader == 0 ? cluster::Level{0} : links_->last_level(leader);
  return level == 0 || level >= cluster::kLevelOfClients;
}

void ClusterMember::forward(std::unique_ptr<loop::Channel> channel,
                            const serving::ConnectionOrigin& origin) {
  auto client = describe_client(*channel, origin);
  if (encoded_bytes(client) <= cluster::kMostForwardedClient)
    return forwarder_->forward(
        std::move(channel), std::move(client),
        {.leader_wait = settings_.cluster.leader_wait, .stall = settings_.stall_timeout});
  parts_.log.limited(os::Log::Level::warning, parts_.service.tick_time(),
                     "connection refused: too much is known of the client to pass it on",
                     {{"address", client.address}});
  host_.hold(std::move(channel));
}

std::optional<ClientForwarderHost::Leader> ClusterMember::leader() const {
  if (phase_ != Phase::running || !forwards()) return std::nullopt;
  const cluster::Member* const found = known_.member(node_->node().leader());
  if (found == nullptr || found->id == node_id_) return std::nullopt;
  const auto address = cluster::parse_member_address(links_->address_of(*found));
  if (!address) return std::nullopt;
  return Leader{.node = found->id, .address = *address};
}

CallerHandshake ClusterMember::begin_client(const Leader& leader,
                                            const cluster::ForwardedClient& client) const {
  return links_->begin_client({.id = leader.node, .address = to_string(leader.address)}, client);
}

// A client of another node, or one that has waited here.
void ClusterMember::serve(std::unique_ptr<loop::Channel> channel,
                          const cluster::ForwardedClient& client) {
  with_origin(client, [&](const serving::ConnectionOrigin& origin) {
    host_.on_forwarded(std::move(channel), origin);
  });
}

void ClusterMember::on_client(const cluster::Hello& hello, loop::Connection connection) {
  auto channel =
      loop::open_channel(parts_.loop, std::move(connection), {}, proxied_client(hello.client));
  if (channel != nullptr) serve(std::move(channel), hello.client);
}

void ClusterMember::leader_changed() {
  if (forwarder_ != nullptr) forwarder_->leader_changed();
}

}  // namespace tubed::node
