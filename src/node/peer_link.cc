#include "node/peer_link.h"

#include <utility>

#include <fmt/format.h>

namespace tubed::node {

PeerLink::PeerLink(loop::Loop& loop, cluster::Member member, cluster::MemberAddress address,
                   const PeerLimits& limits, PeerLinkOwner& owner)
    : loop_(loop),
      member_(std::move(member)),
      address_(std::move(address)),
      limits_(limits),
      owner_(owner),
      wait_(limits.retry),
      timer_(loop, [this] { on_timer(); }) {
  timer_.arm({});
}

void PeerLink::send(std::string frame) {
  if (!up_) return;
  channel_->send(std::move(frame));
  if (channel_->unsent() > limits_.unsent)
    fail(fmt::format("more than {} bytes are not sent", limits_.unsent));
}

void PeerLink::on_timer() {
  if (connector_ == nullptr && channel_ == nullptr) return dial();
  fail("no welcome in time");
}

void PeerLink::dial() {
  timer_.arm(limits_.welcome);
  connector_ = std::make_unique<loop::Connector>(
      loop_, address_.host, address_.port,
      loop::ConnectOptions{.limit = limits_.welcome, .user_timeout = limits_.user_timeout},
      [this](Result<std::unique_ptr<loop::Channel>> result) { on_connected(std::move(result)); });
}

void PeerLink::on_connected(Result<std::unique_ptr<loop::Channel>> result) {
  connector_.reset();
  if (!result) return fail(result.error().message);
  channel_ = std::make_unique<FrameChannel>(loop_, std::move(*result), *this, kMostControlBytes);
  handshake_.emplace(owner_.secrets(), owner_.hello_for(member_));
  channel_->send(handshake_->hello());
}

void PeerLink::on_frame(std::string_view frame) {
  if (const auto version = cluster::later_version(frame))
    return fail(cluster::later_version_text(*version));
  if (up_) return fail("the other node has sent more than a welcome");
  auto step = handshake_->take(frame);
  if (!step) return fail(step.error().message);
  if (!step->reply.empty()) channel_->send(std::move(step->reply));
  const auto& welcome = step->welcome;
  if (!welcome) return;
  level_ = welcome->level;
  if (welcome->status != cluster::WelcomeStatus::ok) {
    wait_ = limits_.last_retry;
    fail(fmt::format("the other node does not accept this node: {}", to_string(welcome->status)));
    return owner_.on_rejected(*this, *welcome);
  }
  if (welcome->level < owner_.level_in_use()) {
    wait_ = limits_.last_retry;
    return fail(fmt::format("it knows only feature level {}, and the cluster uses {}: upgrade it",
                            welcome->level, owner_.level_in_use()));
  }
  up_ = true;
  wait_ = limits_.retry;
  timer_.disarm();
  owner_.on_up(*this);
}

void PeerLink::on_closed(std::string_view reason) {
  fail(up_ || !handshake_ ? std::string(reason) : handshake_->explain(reason));
}

void PeerLink::fail(const std::string& reason) {
  up_ = false;
  connector_.reset();
  channel_.reset();
  handshake_.reset();
  timer_.arm(wait_);
  wait_ = std::min(2 * wait_, limits_.last_retry);
  owner_.on_down(*this, reason);
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
  }
  return "?";
}

}  // namespace tubed::node
