// PeerAcceptor: the listening socket for other nodes, and the accepted connections until each has
// made the handshake of TLS, if this node has certificates, has sent its Hello and, if this node
// has a secret, has proved it (peer_handshake.h).
//
// A connection that sends anything else is closed: a node sends nothing more before it has a
// Welcome. Also closed are a connection whose handshake exceeds limits.hello, and a connection
// whose peer has ended it.
//
// Bounds: a connection is read up to kMostHandshakeBytes, and before that up to
// loop::kMostMutualHandshake for TLS. Each handshake of TLS signs once, for any caller; a tick
// gives loop::TlsHandshakes::kWorkPerTick to these steps, or one step if that takes longer. Hosts
// of members have their own limits (limits.pending_of_member), so other hosts, which share
// limits.strangers, do not keep members from connecting. Beyond a limit, the oldest is closed:
// nodes dial again, and only the newest connection counts.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "cluster/control.h"
#include "loop/listener.h"
#include "loop/timer.h"
#include "loop/tls_handshakes.h"
#include "node/frame_channel.h"
#include "node/peer_handshake.h"
#include "node/peer_limits.h"
#include "os/log.h"
#include "os/socket.h"

namespace tubed::node {

class PeerAcceptorOwner {
 public:
  // For connections that are accepted now.
  virtual const PeerSecurity& security() const = 0;
  // Returns how many members other than this node are at this host: it is in the address, or the
  // name in the address was last resolved to it, or the member was last accepted from there.
  // O(members).
  virtual std::size_t members_at(const NumericHost& host) const = 0;
  // The Hello was taken and, if there are secrets, proved. No Welcome was sent, and all input has
  // been consumed. `channel` needs another owner.
  virtual void on_hello(const CalleeHandshake& handshake,
                        std::unique_ptr<FrameChannel> channel) = 0;

 protected:
  ~PeerAcceptorOwner() = default;
};

class PeerAcceptor final : public loop::ListenerOwner {
 public:
  // Takes over the listening `socket`. The other arguments outlive the acceptor.
  PeerAcceptor(loop::Loop& loop, os::Log& log, os::Socket socket, const PeerLimits& limits,
               PeerAcceptorOwner& owner);

  // Returns HOST:PORT.
  std::string address() const { return os::local_address(listener_.socket()); }
  // Returns the number of connections whose handshake is not complete.
  std::size_t pending() const { return pending_.size(); }
  // The owner's security() has changed: closes these connections.
  void security_changed();

 private:
  class Pending final : public FrameChannelOwner, private loop::TlsOwner {
   public:
    // `host`: that of members.
    Pending(PeerAcceptor& acceptor, std::string peer, std::optional<NumericHost> host);
    ~Pending();

    // Begins the handshake. Returns false if the connection cannot be watched.
    bool begin(os::Socket socket);
    void on_frame(std::string_view frame) override;
    void on_closed(std::string_view reason) override;
    const std::string& peer() const { return peer_; }

    std::list<Pending>::iterator place;
    const std::optional<NumericHost> host;

   private:
    void begin_frames(std::unique_ptr<loop::Channel> channel);
    void on_secured(std::unique_ptr<loop::Channel> channel, const loop::TlsPeer& peer) override;
    void on_handshake_failed(const std::string& peer, std::string_view reason) override;
    Result<bool> take(std::string_view frame);

    PeerAcceptor& acceptor_;
    const std::string peer_;
    CalleeHandshake handshake_;
    std::unique_ptr<FrameChannel> channel_;  // null during the handshake of TLS
    loop::Timer timer_;
  };

  void on_connection(os::Socket socket) override;
  void on_accept_error(const std::string& reason, std::uint64_t refused) override;
  void refuse_excess(const std::optional<NumericHost>& host, std::size_t most);
  void refuse(const Pending& pending, std::string_view reason);
  void refuse_once(const Pending& pending, std::string_view reason);

  loop::Loop& loop_;
  os::Log& log_;
  const PeerLimits& limits_;
  PeerAcceptorOwner& owner_;
  loop::TlsHandshakes handshakes_;
  std::list<Pending> pending_;                            // oldest first
  std::set<std::pair<std::string, std::string>> logged_;  // hosts and reasons of refuse_once()
  loop::Listener listener_;
};

}  // namespace tubed::node
