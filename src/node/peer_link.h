// PeerLink: the connection that this node has dialled to another member, for its frames.
//
// It dials until it has a Welcome, and again whenever the connection is lost:
//
// 1. It dials (peer_dial.h), and first resolves the member's host if it is a name, each time: the
//    member may have moved. The attempt fails if no Welcome arrives within limits.welcome, or the
//    other node does not accept the connection.
// 2. The attempt also fails if the other node does not know the level in use. After the Welcome it
//    is up, and frames are sent. The other node sends nothing further.
// 3. It fails if the connection is lost, if bytes are not acknowledged within limits.user_timeout,
//    or if more than limits.unsent bytes are unsent.
// 4. After a failure it waits for limits.retry, doubled after each further failure up to
//    limits.last_retry, and retries from step 1. A Welcome resets the wait. A node that does not
//    accept the connection is always dialled again after the longest wait.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/control.h"
#include "cluster/member.h"
#include "loop/timer.h"
#include "node/cluster_secret.h"
#include "node/frame_channel.h"
#include "node/peer_dial.h"
#include "node/peer_limits.h"
#include "text/host.h"

namespace tubed::node {

class PeerLink;

class PeerLinkOwner {
 public:
  virtual cluster::Hello hello_for(const cluster::Member& member) const = 0;
  virtual const PeerSecurity& security() const = 0;
  // Returns the level in use in the cluster: a node that does not know it is not accepted.
  virtual cluster::Level level_in_use() const = 0;
  virtual void on_up(PeerLink& link) = 0;
  // The attempt or the connection has failed.
  virtual void on_down(PeerLink& link, const std::string& reason) = 0;
  // The other node has answered with a status other than ok. Called after on_down(). May destroy
  // the link.
  virtual void on_rejected(PeerLink& link, const cluster::Welcome& welcome) = 0;

 protected:
  ~PeerLinkOwner() = default;
};

class PeerLink final : public FrameChannelOwner {
 public:
  // Dials in the next event of the loop. `address` is the parsed address of `member`. The other
  // arguments outlive the link.
  PeerLink(loop::Loop& loop, cluster::Member member, cluster::MemberAddress address,
           const PeerLimits& limits, PeerLinkOwner& owner);

  // Queues the frame if the link is up; otherwise drops it. Calls no function of the owner except
  // on_down().
  void send(std::string frame);
  bool is_up() const { return channel_ != nullptr; }
  // Returns the highest level that the other node knows, by its last Welcome; 0: none arrived.
  cluster::Level level() const { return level_; }
  std::size_t unsent() const { return is_up() ? channel_->unsent() : 0; }
  const cluster::Member& member() const { return member_; }
  bool has_host_name() const { return has_host_name_; }
  // Returns whether the member's host is this, or was when its name was last resolved.
  bool is_at(const NumericHost& host) const;
  // Returns the secret of this connection or attempt; none: there is no secret, or neither.
  const std::optional<ClusterSecret>& secret() const { return secret_; }

 private:
  void on_frame(std::string_view frame) override;
  void on_closed(std::string_view reason) override;
  void dial();
  void dialled(Result<PeerDial::Answer> result);
  void fail(const std::string& reason);

  loop::Loop& loop_;
  const cluster::Member member_;
  const cluster::MemberAddress address_;
  const bool has_host_name_;
  const PeerLimits& limits_;
  PeerLinkOwner& owner_;
  std::optional<ClusterSecret> secret_;
  std::unique_ptr<PeerDial> dial_;
  std::unique_ptr<FrameChannel> channel_;  // while up
  std::vector<NumericHost> hosts_;         // of the name: by the last attempt that has resolved it
  cluster::Level level_ = 0;
  Duration wait_;            // before the next attempt
  loop::Timer retry_timer_;  // armed after a failure
};

}  // namespace tubed::node
