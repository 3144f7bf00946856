#include "node/peer_dial.h"

#include <string>
#include <utility>

namespace tubed::node {

PeerDial::PeerDial(loop::Loop& loop, const cluster::MemberAddress& address,
                   CallerHandshake handshake, const loop::ConnectOptions& options, Done done,
                   loop::HostConnector::Resolved resolved)
    : loop_(loop),
      handshake_(std::move(handshake)),
      done_(std::move(done)),
      timer_(loop, [this] { finish(Error{"no welcome in time"}); }) {
  connector_ = std::make_unique<loop::HostConnector>(
      loop, address.host, address.port, options, std::move(resolved),
      [this](Result<std::unique_ptr<loop::Channel>> result) { on_connected(std::move(result)); });
  timer_.arm(options.limit);  // after the connector's timer, which knows what has taken too long
}

void PeerDial::on_connected(Result<std::unique_ptr<loop::Channel>> result) {
  connector_.reset();
  if (!result) return finish(std::move(result).error());
  if (handshake_.tls() != nullptr) return secure(std::move(*result));
  begin(std::move(*result));
}

void PeerDial::secure(std::unique_ptr<loop::Channel> plain) {
  loop::Connection connection = plain->release_connection();
  plain.reset();
  if (connection.begin_tls(handshake_.tls(), loop::TlsSession::Side::client))
    tls_ = loop::TlsChannel::open(loop_, std::move(connection));
  if (tls_ == nullptr) return finish(Error{"TLS: the connection cannot be watched"});
  tls_->set_owner(*this);
  tls_->want(false, true);  // the first step writes
}

// The private key is used once, and only for a callee whose certificate is verified.
void PeerDial::on_ready(loop::Readiness) {
  switch (tls_->shake_hands()) {
    case loop::TlsSession::Handshake::reads:
      return tls_->want(true, false);
    case loop::TlsSession::Handshake::writes:
      return tls_->want(false, true);
    case loop::TlsSession::Handshake::failed:
      return finish(Error{handshake_.explain_tls(tls_->failure())});
    case loop::TlsSession::Handshake::done:
      if (auto checked = handshake_.check(tls_->peer_of_session()); !checked)
        return finish(std::move(checked).error());
      return begin(std::move(tls_));
  }
}

void PeerDial::begin(std::unique_ptr<loop::Channel> channel) {
  channel_ = std::make_unique<FrameChannel>(loop_, std::move(channel), *this, kMostControlBytes);
  channel_->send(handshake_.hello());
}

void PeerDial::on_frame(std::string_view frame) {
  if (const auto version = cluster::later_version(frame))
    return finish(Error{cluster::later_version_text(*version)});
  auto step = handshake_.take(frame);
  if (!step) return finish(step.error());
  if (!step->reply.empty()) channel_->send(std::move(step->reply));
  if (step->welcome)
    finish(Answer{.welcome = std::move(*step->welcome), .channel = std::move(channel_)});
}

void PeerDial::on_closed(std::string_view reason) {
  finish(Error{handshake_.explain(reason)});
}

void PeerDial::finish(Result<Answer> result) {
  timer_.disarm();
  connector_.reset();
  tls_.reset();
  channel_.reset();
  const Done done = std::move(done_);  // may destroy the object
  done(std::move(result));
}

std::string_view to_string(cluster::WelcomeStatus status) {
  switch (status) {
    case cluster::WelcomeStatus::ok:
      return "ok";
    case cluster::WelcomeStatus::other_cluster:
      return "it is in another cluster";
    case cluster::WelcomeStatus::other_node:
      return "it is another member";
    case cluster::WelcomeStatus::waiting:
      return "it has no state yet";
    case cluster::WelcomeStatus::not_a_member:
      return "this node is no member";
    case cluster::WelcomeStatus::busy:
      return "it is busy";
    case cluster::WelcomeStatus::too_old:
      return "the cluster uses a feature level that this node does not know: upgrade this node";
    case cluster::WelcomeStatus::superseded:
      return "it is of the cluster that was recovered from the cluster of this node";
  }
  return "?";
}

}  // namespace tubed::node
