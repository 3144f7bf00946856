// Requests between nodes, each on its own connection: PeerRequest on the sending node,
// IncomingRequest on the answering node.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cluster/control.h"
#include "loop/timer.h"
#include "node/frame_channel.h"
#include "node/peer_dial.h"
#include "node/peer_limits.h"

namespace tubed::node {

// Dials, waits for the Welcome that ends the handshake, sends the Request, waits for the Response.
class PeerRequest final : public FrameChannelOwner {
 public:
  // The error is one line.
  using Done = std::function<void(Result<cluster::Response>)>;

  // `address` is NAME@HOST:PORT. Calls `done` once, in a later event of the loop; it may destroy
  // the object. Destroying the object earlier cancels the request, which the other node may already
  // have received. `loop` outlives the object.
  PeerRequest(loop::Loop& loop, std::string_view address, CallerHandshake handshake,
              const cluster::Request& request, const PeerLimits& limits, Done done);

 private:
  void on_frame(std::string_view frame) override;
  void on_closed(std::string_view reason) override;
  void dialled(Result<PeerDial::Answer> result);
  void finish(Result<cluster::Response> result);
  Error failure(std::string_view reason) const;

  const std::string address_;
  const std::string request_;
  std::string refused_;  // an immediate failure, which the timer reports
  Done done_;
  loop::Timer timer_;
  std::unique_ptr<PeerDial> dial_;
  std::unique_ptr<FrameChannel> channel_;  // after the Welcome
};

class IncomingRequest;

class IncomingRequestOwner {
 public:
  // The owner calls reply(), now or later.
  virtual void on_request(IncomingRequest& incoming, const cluster::Request& request) = 0;
  // The connection or its time limit has ended. The owner destroys the object.
  virtual void on_request_ended(IncomingRequest& incoming) = 0;

 protected:
  ~IncomingRequestOwner() = default;
};

// A connection that has received its Welcome.
class IncomingRequest final : public FrameChannelOwner {
 public:
  // The dialling node closes the connection when it has the Response; `limit` bounds the whole
  // exchange. `owner` and `loop` outlive the object.
  IncomingRequest(loop::Loop& loop, std::unique_ptr<FrameChannel> channel, Duration limit,
                  IncomingRequestOwner& owner);

  // Precondition: on_request() was called, and no reply has been made. Does not call the owner.
  void reply(const cluster::Response& response);

 private:
  void on_frame(std::string_view frame) override;
  void on_closed(std::string_view reason) override;

  IncomingRequestOwner& owner_;
  std::unique_ptr<FrameChannel> channel_;
  bool requested_ = false;
  loop::Timer timer_;
};

}  // namespace tubed::node
