#include "node/peer_dial.h"

#include <string>
#include <utility>

#include "node/peer_link.h"

namespace tubed::node {

PeerDial::PeerDial(loop::Loop& loop, const cluster::MemberAddress& address,
                   CallerHandshake handshake, const PeerLimits& limits, Done done)
    : loop_(loop),
      handshake_(std::move(handshake)),
      done_(std::move(done)),
      timer_(loop, [this] { finish(Error{"no welcome in time"}); }) {
  timer_.arm(limits.welcome);
  connector_ = std::make_unique<loop::Connector>(
      loop, address.host, address.port,
      // Without a limit for unacknowledged bytes: the other end may be slow to read.
      loop::ConnectOptions{.limit = limits.welcome},
      [this](Result<std::unique_ptr<loop::Channel>> result) { on_connected(std::move(result)); });
}

void PeerDial::on_connected(Result<std::unique_ptr<loop::Channel>> result) {
  connector_.reset();
  if (!result) return finish(std::move(result).error());
  channel_ = std::make_unique<FrameChannel>(loop_, std::move(*result), *this, kMostControlBytes);
  channel_->send(handshake_.hello());
}

void PeerDial::on_frame(std::string_view frame) {
  auto step = handshake_.take(frame);
  if (!step) return finish(step.error());
  if (!step->reply.empty()) channel_->send(std::move(step->reply));
  if (!step->welcome) return;
  if (step->welcome->status != cluster::WelcomeStatus::ok)
    return finish(Error{std::string(to_string(step->welcome->status))});
  if (channel_->unsent() != 0) return finish(Error{"a welcome was sent too early"});
  finish(channel_->release());
}

void PeerDial::on_closed(std::string_view reason) {
  finish(Error{handshake_.explain(reason)});
}

void PeerDial::finish(Result<FrameChannel::Released> result) {
  timer_.disarm();
  connector_.reset();
  channel_.reset();
  const Done done = std::move(done_);  // may destroy the object
  done(std::move(result));
}

}  // namespace tubed::node
