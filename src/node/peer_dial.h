// PeerDial: one attempt to open a connection to another node that then carries other bytes than
// frames: for a client, which is passed to the leader.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "cluster/member.h"
#include "loop/connector.h"
#include "loop/timer.h"
#include "node/frame_channel.h"
#include "node/peer_handshake.h"
#include "node/peer_limits.h"

namespace tubed::node {

class PeerDial final : public FrameChannelOwner {
 public:
  // The connection after the Welcome, on which nothing else was sent, with what was read beyond the
  // Welcome; or one line with the reason why there is none.
  using Done = std::function<void(Result<FrameChannel::Released>)>;

  // Calls `done` once, in a later event of the loop, within limits.welcome; it may destroy the
  // object. `loop` and `limits` outlive the object.
  PeerDial(loop::Loop& loop, const cluster::MemberAddress& address, CallerHandshake handshake,
           const PeerLimits& limits, Done done);

 private:
  void on_connected(Result<std::unique_ptr<loop::Channel>> result);
  void on_frame(std::string_view frame) override;
  void on_closed(std::string_view reason) override;
  void finish(Result<FrameChannel::Released> result);

  loop::Loop& loop_;
  CallerHandshake handshake_;
  Done done_;
  std::unique_ptr<loop::Connector> connector_;  // while connecting
  std::unique_ptr<FrameChannel> channel_;       // while connected
  loop::Timer timer_;
};

}  // namespace tubed::node
