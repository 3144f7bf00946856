// PeerLinks: all connections between this node and the others of its cluster.
//
// Each node dials every other member, and sends its frames only on the connection that it has
// dialled (node/peer_link.h). A connection that it accepts begins with a Hello
// (node/peer_acceptor.h), which gives its purpose:
//
// - frames: the messages of another node. Each node has one such connection at most.
// - fetch: handed to the host, which sends the state on it.
// - request: a change that the other node requests on behalf of an operator.
//
// The rule that the lease of a leader relies on: no frame of a former connection is delivered after
// a frame of a later connection. It holds because the node that dials sends nothing before it has a
// Welcome, and this class, when it accepts a connection for frames, first closes the former one of
// the same node with all that was read from it, and then sends the Welcome.
//
// Bounds: limits.pending connections without a Hello, one connection for frames of each node that
// the host accepts, limits.requests requests of other nodes, limits.unsent bytes of each link.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/control.h"
#include "cluster/member.h"
#include "node/peer_acceptor.h"
#include "node/peer_limits.h"
#include "node/peer_link.h"
#include "node/peer_request.h"
#include "os/log.h"

namespace tubed::node {

// This node, as it introduces itself to others.
struct PeerFacts {
  std::uint64_t cluster = 0;
  cluster::NodeId node = 0;
  std::string address;  // NAME@HOST:PORT
  cluster::Index configuration_index = 0;
  bool has_state = false;
};

// The part of the server that uses the links. Its functions may call those of PeerLinks, but not
// destroy it.
class PeerHost {
 public:
  using Reply = std::function<void(const cluster::Response&)>;

  // Before every other call of an event of the loop.
  virtual void begin_tick() = 0;
  // The answer to a Hello. PeerLinks::usual_status() has the rules; the host adds busy.
  virtual cluster::WelcomeStatus judge(const cluster::Hello& hello) = 0;
  // The answer was not ok; it is sent and the connection closed. A node without state (waiting) may
  // adopt the identity that the Hello gives it.
  virtual void on_turned_away(const cluster::Hello& hello, cluster::WelcomeStatus status) = 0;
  // `frame` is valid during the call, and not decoded.
  virtual void on_frame(cluster::NodeId from, std::string_view frame) = 0;
  // The Welcome is sent, and nothing else was read or sent. The socket is non-blocking.
  virtual void on_fetch(const cluster::Hello& hello, os::Socket socket) = 0;
  // The host calls `reply` once, in the call or later. It does nothing if the connection, or
  // PeerLinks, does not exist any more.
  virtual void on_request(const cluster::Request& request, Reply reply) = 0;
  // Called for each Hello for frames, when it is sent, and without begin_tick(): the member may
  // take its id and the state of this node if it has no state. It changes nothing.
  virtual bool may_invite(cluster::NodeId member) const = 0;
  // A member that was dialled has not welcomed this node. At most every limits.last_retry for each.
  virtual void on_rejected(cluster::NodeId by, const cluster::Welcome& welcome) = 0;

 protected:
  ~PeerHost() = default;
};

class PeerLinks final : public PeerAcceptorOwner,
                        public PeerLinkOwner,
                        public IncomingRequestOwner {
 public:
  // `listening`: the socket for other nodes. The others outlive the object.
  PeerLinks(loop::Loop& loop, os::Log& log, PeerHost& host, os::Socket listening,
            const PeerLimits& limits);
  ~PeerLinks();

  // HOST:PORT of the listening socket.
  std::string address() const { return acceptor_.address(); }
  const PeerFacts& facts() const { return facts_; }
  // For the Hellos and Welcomes from now on. Another identity of the node or the cluster closes all
  // connections for frames, and dials again.
  void set_facts(const PeerFacts& facts);

  // The members of the newest configuration; this node may be among them. Links to others are
  // opened; links to members that are missing now, or have another address, are closed, as are the
  // connections for frames of members that are missing now. O(members).
  void set_members(const std::vector<cluster::Member>& members);

  // The answer to a Hello by the facts and the members that were set, the first that applies:
  // other_node if it names another node, waiting without a state, other_cluster, other_node (a
  // request may go to node 0), not_a_member.
  cluster::WelcomeStatus usual_status(const cluster::Hello& hello) const;

  // Sends the frame if the link to the node is up; drops it otherwise, as for a node that is no
  // member. Calls nothing of the host.
  void send(cluster::NodeId to, std::string frame);
  // True if the link that this node has dialled is up. O(log members).
  bool is_connected(cluster::NodeId node) const;
  // The bytes that wait to be sent to the node.
  std::size_t unsent(cluster::NodeId node) const;
  // Between hold and release of input, no frames are read or delivered.
  void hold_input(bool held);

  // Sends a request to the node at `address` (NAME@HOST:PORT). Calls `done` once, in a later event
  // of the loop and after begin_tick(), within limits.request; never if PeerLinks is destroyed
  // before. The caller bounds the number of requests.
  void request(std::string_view address, const cluster::Request& request, PeerRequest::Done done);

 private:
  // A connection for frames that another node has dialled.
  class Incoming final : public FrameChannelOwner {
   public:
    Incoming(PeerLinks& links, cluster::NodeId node, std::unique_ptr<FrameChannel> frames);

    void on_frame(std::string_view frame) override;
    void on_closed(std::string_view reason) override;

    const cluster::NodeId node;
    const std::unique_ptr<FrameChannel> channel;

   private:
    PeerLinks& links_;
  };

  void on_hello(const cluster::Hello& hello, std::unique_ptr<FrameChannel> channel) override;
  void accept(const cluster::Hello& hello, std::unique_ptr<FrameChannel> channel);
  cluster::Hello hello_for(const cluster::Member& member) const override;
  void on_up(PeerLink& link) override;
  void on_down(PeerLink& link, const std::string& reason) override;
  void on_rejected(PeerLink& link, const cluster::Welcome& welcome) override;
  void on_request(IncomingRequest& incoming, const cluster::Request& request) override;
  void on_request_ended(IncomingRequest& incoming) override;

  bool is_member(cluster::NodeId node) const;
  std::string welcome(cluster::WelcomeStatus status) const;
  void open_links();

  // A link, and the reason of its last failure since it was up: each reason is logged once.
  struct Outgoing {
    std::unique_ptr<PeerLink> link;
    std::string reason;
  };

  loop::Loop& loop_;
  os::Log& log_;
  PeerHost& host_;
  const PeerLimits limits_;
  PeerFacts facts_;
  std::vector<cluster::Member> members_;
  bool held_ = false;
  std::map<cluster::NodeId, Outgoing> outgoing_;
  std::map<cluster::NodeId, std::unique_ptr<Incoming>> incoming_;
  std::list<std::unique_ptr<PeerRequest>> requests_;
  std::list<std::shared_ptr<IncomingRequest>> incoming_requests_;
  PeerAcceptor acceptor_;
};

}  // namespace tubed::node
