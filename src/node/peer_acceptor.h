// PeerAcceptor: the listening socket for other nodes, and the accepted connections until each has
// sent its Hello.
//
// A connection that sends anything other than its Hello is closed: a node sends nothing before it
// has a Welcome. Also closed are a connection without a Hello within limits.hello, the oldest if
// more than limits.pending have sent no Hello, and a connection whose peer has ended it: nodes dial
// again, and only the newest connection counts.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "cluster/control.h"
#include "loop/listener.h"
#include "loop/timer.h"
#include "node/frame_channel.h"
#include "node/peer_limits.h"
#include "os/log.h"

namespace tubed::node {

class PeerAcceptorOwner {
 public:
  // Nothing was sent on the connection, and all input has been consumed. `channel` needs another
  // owner.
  virtual void on_hello(const cluster::Hello& hello, std::unique_ptr<FrameChannel> channel) = 0;

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
  // Returns the number of connections without a Hello.
  std::size_t pending() const { return pending_.size(); }

 private:
  class Pending final : public FrameChannelOwner {
   public:
    Pending(PeerAcceptor& acceptor, std::unique_ptr<loop::Channel> channel);

    void on_frame(std::string_view frame) override;
    void on_closed(std::string_view reason) override;
    std::string peer() const { return channel_->peer(); }

    std::list<Pending>::iterator place;

   private:
    PeerAcceptor& acceptor_;
    std::unique_ptr<FrameChannel> channel_;
    loop::Timer timer_;
  };

  void on_connection(os::Socket socket) override;
  void on_accept_error(const std::string& reason, std::uint64_t refused) override;
  void refuse(const Pending& pending, std::string_view reason);
  void refuse_version(const Pending& pending, std::uint8_t version);

  loop::Loop& loop_;
  os::Log& log_;
  const PeerLimits& limits_;
  PeerAcceptorOwner& owner_;
  std::list<Pending> pending_;                                     // oldest first
  std::set<std::pair<std::string, std::uint8_t>> later_versions_;  // logged, by host
  loop::Listener listener_;
};

}  // namespace tubed::node
