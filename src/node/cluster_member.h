// ClusterMember: this server as a member of a cluster, over all lives of its node (node_owner.h).
//
// It goes through these phases:
//
//   waiting     it has no state. When a cluster calls it, it fetches the state of the caller, and
//               then it is a member under the id of the call.
//   running     the node takes part. Clients are served while it leads (serves()).
//   restarting  leadership was lost, or the state of another node was fetched. The clients are
//               closed, and replies that were held back are not sent. When no operation on a file
//               is under way, the node is destroyed, a fetched state is installed, the queue is
//               emptied, and the node begins its next life.
//   closing     the server stops: the journal is closed properly.
//
// While it runs, a node that lacks entries fetches the state of the leader in the background, and
// a node sends its state to another node that fetches it.
//
// The queue uses the time of the cluster. On a node that does not serve, this time does not
// advance, and the queue only replays.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/control.h"
#include "cluster/member.h"
#include "commands/queue_clock.h"
#include "loop/timer.h"
#include "node/client_forwarder.h"
#include "node/cluster_admin.h"
#include "node/cluster_log.h"
#include "node/cluster_mode.h"
#include "node/hand_over.h"
#include "node/known_cluster.h"
#include "node/leadership.h"
#include "node/learned_addresses.h"
#include "node/node_owner.h"
#include "node/own_address.h"
#include "node/own_removal.h"
#include "node/peer_links.h"
#include "node/state_transfers.h"

namespace tubed::node {

class ClusterMember final : public ClusterMode,
                            private ClusterLogHost,
                            private commands::QueueClock,
                            private PeerHost,
                            private ClusterAdminHost,
                            private NodeOwnerHost,
                            private StateTransfersHost,
                            private ClientForwarderHost {
 public:
  // Makes itself the log and the clock of the service.
  ClusterMember(const ClusterParts& parts, const Settings& settings, ClusterHost& host);

  Result<void> listen() override;
  Result<void> start() override;
  bool serves() const override { return serves_; }
  bool forwards() const override;
  bool knows_leader() const override { return leader().has_value(); }
  void forward(std::unique_ptr<loop::Channel> channel,
               const serving::ConnectionOrigin& origin) override;
  std::size_t forwarded() const override { return forwarder_ == nullptr ? 0 : forwarder_->count(); }
  const stats::ClusterState& state() override;
  Result<bool> read_files(const Settings& settings) override;
  void settings_changed() override;
  void set_tls(std::shared_ptr<const loop::TlsContext> tls) override;
  bool hand_over(std::function<void()> done) override;

 private:
  enum class Phase : std::uint8_t { waiting, running, restarting, closing };

  // ClusterLogHost.
  bool drive() override;
  Time next_deadline() const override;
  void close(std::function<void()> closed) override;
  void log_advanced() override { parts_.scheduler.log_advanced(); }
  bool holds_commands() const override;
  const journal::Journal* journal() const override;
  // QueueClock.
  std::optional<Time> tick_began(Time tick) override;
  engine::Deadlines next_deadlines() const override;
  // PeerHost, NodeOwnerHost, StateTransfersHost.
  void begin_tick() override { parts_.scheduler.begin_tick(); }
  cluster::WelcomeStatus judge(const cluster::Hello& hello) override;
  void on_turned_away(const cluster::Hello& hello, cluster::WelcomeStatus status) override;
  std::string_view on_frame(cluster::NodeId from, std::string_view frame) override;
  void on_fetch(const cluster::Hello& hello, loop::Connection connection) override;
  void on_client(const cluster::Hello& hello, loop::Connection connection) override;
  void on_stated_address(const cluster::Member& member, const std::string& stated) override;
  void on_rejected(cluster::NodeId by, const cluster::Welcome& welcome) override;
  void on_request(const cluster::Request& request, Reply reply) override;
  bool may_invite(cluster::NodeId member) const override;
  // ClusterAdminHost.
  const stats::ClusterState& cluster_state() override { return state(); }
  void change(const cluster::Request& request, Answer answer) override;

  // NodeOwnerHost.
  void send(cluster::NodeId to, std::string frame) override;
  void fetch_state(cluster::NodeId from) override;
  void begin_serving() override;
  void leadership_lost() override;
  void level_risen() override { introduce(); }
  void appends_were_slow(cluster::NodeId follower, std::uint64_t count, Duration longest) override;
  cluster::Level level_of(cluster::NodeId member) const override {
    return links_->connected_level(member);
  }
  void node_failed(int exit_code) override { host_.cluster_failed(exit_code); }
  // StateTransfersHost.
  void fetch_ended(bool fetched) override;
  // ClientForwarderHost.
  std::optional<Leader> leader() const override;
  CallerHandshake begin_client(const Leader& leader,
                               const cluster::ForwardedClient& client) const override;
  void serve(std::unique_ptr<loop::Channel> channel,
             const cluster::ForwardedClient& client) override;
  void hold(std::unique_ptr<loop::Channel> channel) override { host_.hold(std::move(channel)); }

  Result<void> open_directory();
  Result<void> open_node();
  void stop_serving();
  void go_on_when_idle();
  void restart();
  void fail(int exit_code, const std::string& reason);
  void begin_fetch(cluster::NodeId source, const std::string& address);
  void look_at_members();
  void follow_addresses();
  cluster::Response try_address(const cluster::Request& request);
  void close_journal();
  void go_on_closing();
  void request_own_removal();
  void end_connections();
  void end_superseded(const cluster::Welcome& welcome);
  bool is_removed_by(const cluster::Welcome& welcome) const;
  void introduce();
  void leader_changed();

  ClusterParts parts_;
  const Settings& settings_;
  ClusterHost& host_;
  ClusterLog log_;
  OwnAddress own_address_;
  Phase phase_ = Phase::waiting;
  bool serves_ = false;

  // Of a member, or of a node that fetches its first state; 0: none.
  std::uint64_t cluster_id_ = 0;
  cluster::NodeId node_id_ = 0;

  std::unique_ptr<PeerLinks> links_;           // null before listen()
  std::optional<ClusterSecrets> new_secrets_;  // from read_files() to settings_changed()
  std::unique_ptr<NodeOwner> node_;            // null while it waits, and for a moment in a restart
  std::unique_ptr<Leadership> leadership_;     // while it serves
  std::unique_ptr<ClusterAdmin> admin_;
  std::unique_ptr<ClientForwarder> forwarder_;  // null before listen(), and with "refuse"

  KnownCluster known_;
  LearnedAddresses learned_;
  OwnRemoval own_removal_;
  HandOver hand_over_;
  std::function<void()> closed_;  // of close()
  bool all_committed_ = false;    // after close()
  bool journal_closed_ = false;
  stats::ClusterState state_;
  std::uint64_t shown_id_ = 0;          // of which state_.cluster was made
  std::uint64_t past_leases_lost_ = 0;  // before this leadership
  loop::Timer restart_timer_;
  StateTransfers transfers_;  // destroyed before the node
};

}  // namespace tubed::node
