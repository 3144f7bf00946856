// PeerDial: one attempt to open a connection to another node. It connects, makes the handshake of
// TLS if this node has certificates, and begins the handshake of nodes (peer_handshake.h), which
// ends with the Welcome of the other node.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "cluster/control.h"
#include "cluster/member.h"
#include "loop/host_connector.h"
#include "loop/timer.h"
#include "loop/tls_channel.h"
#include "node/frame_channel.h"
#include "node/peer_handshake.h"
#include "node/peer_limits.h"

namespace tubed::node {

class PeerDial final : public FrameChannelOwner, private loop::ChannelOwner {
 public:
  struct Answer {
    cluster::Welcome welcome;  // with any status
    // Nothing was sent on it after the handshake. Frames of up to kMostControlBytes may arrive. It
    // needs another owner.
    std::unique_ptr<FrameChannel> channel;
  };
  // The answer of the other node, or one line with the reason why there is none.
  using Done = std::function<void(Result<Answer>)>;

  // Calls `done` once, in a later event of the loop, within options.limit; it may destroy the
  // object, but not the channel before it has another owner. Destroying the object earlier cancels
  // the attempt. `loop` outlives the object. If the host is a name, it is resolved first, and
  // `resolved` called.
  PeerDial(loop::Loop& loop, const cluster::MemberAddress& address, CallerHandshake handshake,
           const loop::ConnectOptions& options, Done done,
           loop::HostConnector::Resolved resolved = {});

 private:
  void on_connected(Result<std::unique_ptr<loop::Channel>> result);
  void secure(std::unique_ptr<loop::Channel> plain);
  void on_ready(loop::Readiness ready) override;
  void begin(std::unique_ptr<loop::Channel> channel);
  void on_frame(std::string_view frame) override;
  void on_closed(std::string_view reason) override;
  void finish(Result<Answer> result);

  loop::Loop& loop_;
  CallerHandshake handshake_;
  Done done_;
  std::unique_ptr<loop::HostConnector> connector_;  // while connecting
  std::unique_ptr<loop::TlsChannel> tls_;           // during the handshake of TLS
  std::unique_ptr<FrameChannel> channel_;           // after it
  loop::Timer timer_;
};

// Returns a clause for logs and errors: "it has no state yet".
std::string_view to_string(cluster::WelcomeStatus status);

}  // namespace tubed::node
