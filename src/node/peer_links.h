// PeerLinks: all connections between this node and the other nodes of its cluster.
//
// Each node dials every other member, and sends its frames only on the connection that it has
// dialled (node/peer_link.h). An accepted connection begins with a Hello (node/peer_acceptor.h),
// which states its purpose:
//
// - frames: the messages of another node. Each node has at most one such connection.
// - fetch: handed to the host, which sends the state on it.
// - request: a change that the other node requests on behalf of an operator.
// - client: handed to the host, for a client of the other node.
//
// With secrets, both ends of each connection prove them first; with certificates, each connection
// begins with TLS (node/peer_handshake.h).
//
// The lease of a leader relies on this rule: no frame of a former connection is delivered after a
// frame of a later connection. It holds because the dialling node sends nothing before it has a
// Welcome, and because this class, when it accepts a connection for frames, first closes the former
// connection of that node, discarding everything read from it, and then sends the Welcome.
//
// The Hellos for frames and for requests have digests of the settings that should be the same on
// all nodes. When they change, each member with a link that is up gets a request for this alone,
// until it has answered.
//
// A connection on which a frame of a later protocol version arrives, or a frame that no node sends,
// is closed, with a line in the log.
//
// Bounds: connections in their handshake (node/peer_acceptor.h); one connection for frames per
// member, and limits.strangers of nodes that are not known to be members; limits.requests requests
// of other nodes; limits.unsent bytes per link.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/control.h"
#include "cluster/member.h"
#include "node/learned_addresses.h"
#include "node/peer_acceptor.h"
#include "node/peer_limits.h"
#include "node/peer_link.h"
#include "node/peer_request.h"
#include "node/shared_settings.h"
#include "os/log.h"

namespace tubed::node {

// This node, as it introduces itself to others.
struct PeerFacts {
  std::uint64_t cluster = 0;
  cluster::NodeId node = 0;
  std::string address;  // NAME@HOST:PORT
  cluster::Index configuration_index = 0;
  bool has_state = false;
  cluster::Level level = cluster::kFirstLevel;  // in use in the cluster
  SettingDigests settings = {};
};

// The part of the server that uses the links. Its functions may call PeerLinks but not destroy it.
class PeerHost {
 public:
  using Reply = std::function<void(const cluster::Response&)>;

  // Called before all other functions in an event of the loop.
  virtual void begin_tick() = 0;
  // Answers a Hello. PeerLinks::usual_status() has the rules; the host adds busy.
  virtual cluster::WelcomeStatus judge(const cluster::Hello& hello) = 0;
  // A Hello was not answered ok; the answer is sent and the connection closed. A node without a
  // state (waiting) may adopt the identity in the Hello.
  virtual void on_turned_away(const cluster::Hello& hello, cluster::WelcomeStatus status) = 0;
  // `frame` is valid during the call, and is not decoded. Returns why no node sends such a frame,
  // for the log, which closes the connection; otherwise nothing.
  virtual std::string_view on_frame(cluster::NodeId from, std::string_view frame) = 0;
  // The Welcome was sent, and nothing else was read or sent. The socket is non-blocking.
  virtual void on_fetch(const cluster::Hello& hello, loop::Connection connection) = 0;
  // The same for a client of the other node: Hello::client.
  virtual void on_client(const cluster::Hello& hello, loop::Connection connection) = 0;
  // The host calls `reply` once, within the call or later. It has no effect if the connection or
  // PeerLinks no longer exists.
  virtual void on_request(const cluster::Request& request, Reply reply) = 0;
  // Called without begin_tick() for each Hello for frames when it is sent. Returns true if the
  // member, if it has no state, may take its id and the state of this node. Changes nothing.
  virtual bool may_invite(cluster::NodeId member) const = 0;
  // The member, which has just been accepted for frames, says that it listens at `stated`,
  // NAME@HOST:PORT. It has proved the secret, or has a certificate with its name: without secrets
  // and certificates, this is not called. May call set_learned().
  virtual void on_stated_address(const cluster::Member& member, const std::string& stated) = 0;
  // A dialled member has rejected this node. Called at most once per limits.last_retry, member and
  // address.
  virtual void on_rejected(cluster::NodeId by, const cluster::Welcome& welcome) = 0;

 protected:
  ~PeerHost() = default;
};

class PeerLinks final : public PeerAcceptorOwner,
                        public PeerLinkOwner,
                        public IncomingRequestOwner {
 public:
  // `listening` is the socket for other nodes. The other arguments outlive the object.
  PeerLinks(loop::Loop& loop, os::Log& log, PeerHost& host, os::Socket listening,
            const PeerLimits& limits);
  ~PeerLinks();

  // Returns HOST:PORT of the listening socket.
  std::string address() const { return acceptor_.address(); }
  const PeerFacts& facts() const { return facts_; }
  // Sets the facts for later Hellos and Welcomes. If the identity of the node or the cluster
  // changes, all connections for frames are closed and dialled again. Other settings are sent to
  // the members.
  void set_facts(const PeerFacts& facts);

  // Sets the clusters from which this one was recovered: their nodes are answered superseded.
  void set_former_clusters(std::vector<std::uint64_t> clusters) { former_ = std::move(clusters); }

  // Sets the members of the newest configuration, which may include this node. Opens links to new
  // members. Closes links to members that are now missing or have another address, unless the link
  // is up at that, and connections for frames of nodes that are now missing and did not know a
  // later configuration, or whose certificate has another name than the member. O(members).
  void set_members(const std::vector<cluster::Member>& members);

  // Returns the address that the node has stated on its present connection for frames
  // (PeerHost::on_stated_address); empty: none. O(log nodes).
  std::string stated_address(cluster::NodeId node) const;
  // Sets the addresses at which members are dialled besides their own (peer_link.h). O(members).
  void set_learned(const LearnedAddresses::All& addresses);
  // Returns where the member is reached, or was last, if this node dials it; otherwise its own
  // address. NAME@HOST:PORT. O(log members).
  std::string address_of(const cluster::Member& member) const;
  // Returns the learned address, HOST:PORT, if the link is up there; otherwise an empty text. O(log
  // members).
  std::string learned_address(cluster::NodeId node) const;

  // Sets the secrets for later connections. Closes connections for frames whose secret is no longer
  // one of them, and those without a secret if there are any. Returns true if connections that were
  // handed over, for fetches and clients, may be no longer valid either. O(members).
  bool set_secrets(const ClusterSecrets& secrets);
  // Sets the certificates for later connections; null: without TLS. Closes all connections for
  // frames if TLS begins or ends, or if the authorities change: then a certificate may no longer be
  // valid. Returns true if it has closed them: connections that were handed over are no longer
  // valid either. O(members).
  bool set_tls(NodeTls tls);
  const PeerSecurity& security() const override { return security_; }

  // Returns the answer to a Hello according to the current facts and members, the first that
  // applies: superseded, other_node if it names another node, waiting without a state,
  // other_cluster, other_node (a request may go to node 0), not_a_member, too_old. A caller that is
  // no member but knows a later configuration may be a member in it, and may send messages, which
  // bring this node that configuration. It gets no state, and no request of it is heard.
  cluster::WelcomeStatus usual_status(const cluster::Hello& hello) const;

  // Sends the frame if the link to the node is up; otherwise drops it, as for a node that is not a
  // member. Does not call the host.
  void send(cluster::NodeId to, std::string frame);
  // True if the link that this node has dialled is up. O(log members).
  bool is_connected(cluster::NodeId node) const;
  // Returns the highest level that the node knows, if the link to it is up; otherwise 0. O(log
  // members).
  cluster::Level connected_level(cluster::NodeId node) const;
  // Returns the highest level that the node knew when it was last connected, in either direction;
  // 0: never since the start. O(log members).
  cluster::Level last_level(cluster::NodeId node) const;
  // Returns why the link to the node is down: one line for people. Empty: it is up or was not
  // tried, or the node has no state yet. O(log members).
  std::string last_failure(cluster::NodeId node) const;
  // Returns which settings differ between the nodes.
  const std::vector<stats::DifferingSetting>& differing() const { return shared_.differing(); }
  // Returns the bytes that wait to be sent to the node.
  std::size_t unsent(cluster::NodeId node) const;

  // Begins the handshake of a connection to the member for a client of this node.
  CallerHandshake begin_client(const cluster::Member& member,
                               const cluster::ForwardedClient& client) const;
  const PeerLimits& limits() const { return limits_; }

  // Sends a request to the node at `address` (NAME@HOST:PORT). Calls `done` once, in a later event
  // of the loop and after begin_tick(), within limits.request; never if PeerLinks is destroyed
  // first. The caller bounds the number of requests.
  void request(std::string_view address, const cluster::Request& request, PeerRequest::Done done);

 private:
  // A connection for frames that another node has dialled.
  class Incoming final : public FrameChannelOwner {
   public:
    Incoming(PeerLinks& links, const CalleeHandshake& handshake,
             std::unique_ptr<FrameChannel> frames);

    void on_frame(std::string_view frame) override;
    void on_closed(std::string_view reason) override;

    const cluster::NodeId node;
    const cluster::Index configuration_index;   // of the Hello
    const std::optional<ClusterSecret> secret;  // that it has proved
    const bool is_named;                        // a certificate has proved the name in `stated`
    const std::string stated;  // the address of the Hello; empty: it has not proved who it is
    const cluster::Level level;
    const SettingDigests settings;
    const std::unique_ptr<FrameChannel> channel;

   private:
    PeerLinks& links_;
  };

  std::size_t members_at(const NumericHost& host) const override;
  void on_hello(const CalleeHandshake& handshake, std::unique_ptr<FrameChannel> channel) override;
  void accept(const CalleeHandshake& handshake, std::unique_ptr<FrameChannel> channel);
  cluster::Hello hello_for(const cluster::Member& member) const override;
  cluster::Level level_in_use() const override { return facts_.level; }
  void on_up(PeerLink& link) override;
  void on_down(PeerLink& link, const std::string& reason) override;
  void on_rejected(PeerLink& link, const cluster::Welcome& welcome) override;
  void on_request(IncomingRequest& incoming, const cluster::Request& request) override;
  void on_request_ended(IncomingRequest& incoming) override;

  bool is_member(cluster::NodeId node) const;
  void note_host(cluster::NodeId from, std::string_view peer);
  bool has_room_for(const cluster::Hello& hello) const;
  bool is_itself(const CalleeHandshake& handshake) const;
  bool may_have_name(cluster::NodeId node, std::string_view address) const;
  void note_address(cluster::NodeId from);
  void close_links();
  std::string answer(const CalleeHandshake& handshake, cluster::WelcomeStatus status) const;
  void open_links();
  const SettingDigests& shown_settings() const;
  void send_settings();
  void refuse_frame(cluster::NodeId from, std::string_view reason);

  // A link, and the last reason for which it failed since it was up: each reason is logged once.
  struct Outgoing {
    std::unique_ptr<PeerLink> link;
    std::string reason;
    bool waits = false;        // the member has no state yet
    cluster::Level level = 0;  // in the member's last Hello; 0: none
    std::string refusal;       // the reason for which a frame of it was refused last
    // Of a member whose host is a name, or was learned: from where it was last accepted.
    std::optional<NumericHost> seen_at = {};
    SettingDigests knows = {};      // the settings of this node that the member has last been sent
    bool is_sent_settings = false;  // a request with them is under way
  };

  loop::Loop& loop_;
  os::Log& log_;
  PeerHost& host_;
  const PeerLimits limits_;
  PeerFacts facts_;
  PeerSecurity security_;
  SharedSettings shared_;
  std::vector<std::uint64_t> former_;
  std::vector<cluster::Member> members_;
  LearnedAddresses::All learned_;
  std::map<cluster::NodeId, Outgoing> outgoing_;
  std::map<cluster::NodeId, std::unique_ptr<Incoming>> incoming_;
  std::list<std::unique_ptr<PeerRequest>> requests_;
  std::list<std::shared_ptr<IncomingRequest>> incoming_requests_;
  PeerAcceptor acceptor_;
  loop::Timer settings_timer_;  // armed after a failure to send the settings
};

}  // namespace tubed::node
