// ClientForwarder: passes the clients of a node that does not lead to the leader.
//
// Each client has a connection of its own to the leader's address for nodes, which begins with a
// Hello for a client (peer_handshake.h) and then carries the client's bytes (byte_pipe.h). TLS ends
// here; the leader decides the client's role, by what the Hello says of it.
//
//  1. A client waits for a leader, at most for cluster.leader_wait. At most kMostDials connections
//     are being opened at a time; the others wait in their order. A failed attempt is repeated.
//  2. When this node serves meanwhile, it serves the waiting clients itself.
//  3. A client is passed on until one end closes the connection: a leader that ceases to lead
//     closes it after a whole reply.
//  4. If another node leads, a connection to the former leader ends after limits.user_timeout at
//     the latest, because that node may be unreachable.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "cluster/control.h"
#include "cluster/member.h"
#include "loop/channel.h"
#include "loop/timer.h"
#include "node/byte_pipe.h"
#include "node/peer_dial.h"
#include "node/peer_limits.h"
#include "os/log.h"

namespace tubed::node {

// The node, as the forwarder sees it.
class ClientForwarderHost {
 public:
  struct Leader {
    cluster::NodeId node = 0;
    cluster::MemberAddress address;
  };

  virtual bool serves() const = 0;
  // Returns the leader, if it is another node that takes clients of this one.
  virtual std::optional<Leader> leader() const = 0;
  // Begins the connection to the leader for this client.
  virtual CallerHandshake begin_client(const Leader& leader,
                                       const cluster::ForwardedClient& client) const = 0;
  // Called before the functions below, in an event of the loop.
  virtual void begin_tick() = 0;
  // This node serves the client. Precondition: serves().
  virtual void serve(std::unique_ptr<loop::Channel> channel,
                     const cluster::ForwardedClient& client) = 0;
  // Closes the client's connection a moment later.
  virtual void hold(std::unique_ptr<loop::Channel> channel) = 0;

 protected:
  ~ClientForwarderHost() = default;
};

class ClientForwarder {
 public:
  static constexpr std::size_t kMostDials = 4;

  // All arguments outlive the forwarder.
  ClientForwarder(loop::Loop& loop, os::Log& log, const PeerLimits& limits,
                  ClientForwarderHost& host);
  ~ClientForwarder();

  struct Times {
    Duration leader_wait;  // at most, for a leader
    Duration stall;        // at most, while the client reads nothing
  };
  // Takes a client, which has sent nothing that was read.
  void forward(std::unique_ptr<loop::Channel> channel, cluster::ForwardedClient client,
               const Times& times);
  // True after end().
  bool ending() const { return ending_; }
  // Returns the number of clients that wait or are passed on. O(1).
  std::size_t count() const { return waiting_.size() + passed_on_.size(); }

  // The leader has changed, or this node has begun or ceased to serve. Calls no function of the
  // host.
  void leader_changed();
  // Closes the clients that are passed on, and dials the leader again for those that wait: the
  // connections were made with secrets or certificates that are no longer valid. O(clients).
  void security_changed();
  // Takes no further clients: closes those that wait; the others end when the leader has answered
  // what they have sent. Calls `ended` in an event of the loop when there is none left, or after
  // `limit`, when the others are closed.
  void end(Duration limit, std::function<void()> ended);

 private:
  class Forwarded;
  using Clients = std::list<std::unique_ptr<Forwarded>>;

  void go_on();
  void drop_dials(cluster::NodeId except);
  void dial(Forwarded& client, const ClientForwarderHost::Leader& leader);
  void dialled(Forwarded& client, Result<PeerDial::Answer> answer);
  void remove(Forwarded& client);
  void finish_end();
  void serve_waiting();
  void end_waits();
  void end_former();
  void arm_deadline();

  loop::Loop& loop_;
  os::Log& log_;
  const PeerLimits& limits_;
  ClientForwarderHost& host_;
  Clients waiting_;  // in the order of their arrival
  Clients passed_on_;
  std::size_t dials_ = 0;
  Duration retry_wait_;       // doubles after each failed attempt
  std::string last_failure_;  // of an attempt
  bool ending_ = false;
  std::function<void()> ended_;  // of end()
  loop::Timer retry_timer_;      // armed after a failed attempt and a change
  loop::Timer deadline_timer_;   // of the client that has waited longest
  loop::Timer former_timer_;     // see step 4
  loop::Timer end_timer_;
};

}  // namespace tubed::node
