// PeerLink: the connection that this node has dialled to another member, for its frames.
//
// It dials until it has a Welcome, and again whenever the connection is lost:
//
// 1. It dials (peer_dial.h), and first resolves the member's host if it is a name, each time: the
//    member may have moved. The attempt fails if no Welcome arrives within limits.welcome, or the
//    other node does not accept the connection. If an address was learned (set_learned()), the two
//    take turns, so that no learned address keeps the node from the member's own: first that of the
//    last connection, then at once the other.
// 2. The attempt also fails if the other node does not know the level in use. After the Welcome it
//    is up, and frames are sent. The other node sends nothing further.
// 3. It fails if the connection is lost, if bytes are not acknowledged within limits.user_timeout,
//    or if more than limits.unsent bytes are unsent.
// 4. After a failure of each address it waits for limits.retry, doubled after each further failure
//    up to limits.last_retry, and retries from step 1. A Welcome resets the wait. A node that does
//    not accept the connection is always dialled again after the longest wait.
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
  // The node at one of the addresses has answered with a status other than ok. Called after
  // on_down(). May destroy the link.
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
  // Sets another address at which the member may be reached; none: only at its own. Dials it soon
  // if it was not set before and the link is not up. Ends a connection to the former learned
  // address. May call on_down().
  void set_learned(const std::optional<cluster::MemberAddress>& address);
  // The configuration has another address for the member. Returns true if the link is up at that:
  // it takes the address for the member's own, and stays up. Otherwise it changes nothing.
  bool adopt(const cluster::Member& member);
  // Returns the address of the connection or, while the link is down, of the last connection or,
  // before any, the member's own.
  const cluster::MemberAddress& address() const;
  // True if address() is the learned address.
  bool is_at_learned() const { return learned_ && (is_up() ? tries_learned_ : was_at_learned_); }
  // True if a host of the member is a name, or was learned.
  bool may_have_moved() const { return own_.is_named || learned_; }
  // Returns the settings in the Hello of this connection or attempt.
  const std::vector<cluster::SettingDigest>& sent_settings() const { return sent_settings_; }
  // Returns whether a host of the member is this, or was when its name was last resolved.
  bool is_at(const NumericHost& host) const;
  // Returns the secret of this connection or attempt; none: there is no secret, or neither.
  const std::optional<ClusterSecret>& secret() const { return secret_; }

 private:
  void on_frame(std::string_view frame) override;
  void on_closed(std::string_view reason) override;
  void dial();
  void dialled(Result<PeerDial::Answer> result);
  void fail(const std::string& reason);

  // An address of the member.
  struct Place {
    explicit Place(cluster::MemberAddress place_address);

    cluster::MemberAddress address;
    bool is_named;                   // the host is a name
    std::vector<NumericHost> hosts;  // of a name: by the last attempt that has resolved it
  };

  Place& next_place() { return tries_learned_ ? *learned_ : own_; }

  loop::Loop& loop_;
  cluster::Member member_;
  Place own_;
  std::optional<Place> learned_;
  // Invariant: false without learned_.
  bool tries_learned_ = false;   // in this connection or attempt, or in the next
  bool was_at_learned_ = false;  // in the last connection
  bool is_second_ = false;       // both are tried without a wait, and the first has failed
  const PeerLimits& limits_;
  PeerLinkOwner& owner_;
  std::optional<ClusterSecret> secret_;
  std::vector<cluster::SettingDigest> sent_settings_;
  std::unique_ptr<PeerDial> dial_;
  std::unique_ptr<FrameChannel> channel_;  // while up
  cluster::Level level_ = 0;
  Duration wait_;            // before the next attempt
  loop::Timer retry_timer_;  // armed after a failure
};

}  // namespace tubed::node
