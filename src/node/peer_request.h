// Requests between nodes, each on a connection of its own: PeerRequest at the node that sends it,
// IncomingRequest at the node that answers.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cluster/control.h"
#include "loop/connector.h"
#include "loop/timer.h"
#include "node/frame_channel.h"
#include "node/peer_limits.h"

namespace tubed::node {

// Dials, sends the Hello, waits for the Welcome, sends the Request and waits for the Response.
class PeerRequest final : public FrameChannelOwner {
 public:
  // The error is one line.
  using Done = std::function<void(Result<cluster::Response>)>;

  // `address`: NAME@HOST:PORT. Calls `done` once, in a later event of the loop; it may destroy the
  // object. To destroy it before that cancels the request, which the other node may already have
  // got. `loop` outlives it.
  PeerRequest(loop::Loop& loop, std::string_view address, const cluster::Hello& hello,
              const cluster::Request& request, const PeerLimits& limits, Done done);

 private:
  void on_frame(std::string_view frame) override;
  void on_closed(std::string_view reason) override;
  void on_connected(Result<std::unique_ptr<loop::Channel>> result);
  void finish(Result<cluster::Response> result);
  Error failure(std::string_view reason) const;

  loop::Loop& loop_;
  const std::string address_;
  const std::string hello_;
  const std::string request_;
  bool welcomed_ = false;
  std::string refused_;  // at once; reported by the timer
  Done done_;
  loop::Timer timer_;
  std::unique_ptr<loop::Connector> connector_;
  std::unique_ptr<FrameChannel> channel_;
};

class IncomingRequest;

class IncomingRequestOwner {
 public:
  // The owner calls reply() now or later.
  virtual void on_request(IncomingRequest& incoming, const cluster::Request& request) = 0;
  // The connection has ended, or its time limit. The owner destroys the object.
  virtual void on_request_ended(IncomingRequest& incoming) = 0;

 protected:
  ~IncomingRequestOwner() = default;
};

// A connection that has got its Welcome.
class IncomingRequest final : public FrameChannelOwner {
 public:
  // The node that has dialled closes the connection when it has the Response; `limit` bounds all.
  // `owner` and `loop` outlive the object.
  IncomingRequest(loop::Loop& loop, std::unique_ptr<FrameChannel> channel, Duration limit,
                  IncomingRequestOwner& owner);

  // Precondition: on_request() was called, and no other reply was made. Calls nothing.
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
