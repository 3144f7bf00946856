#include "node/peer_link.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tubed::node {

PeerLink::PeerLink(loop::Loop& loop, cluster::Member member, cluster::MemberAddress address,
                   const PeerLimits& limits, PeerLinkOwner& owner)
    : loop_(loop),
      member_(std::move(member)),
      address_(std::move(address)),
      has_host_name_(address_.has_host_name()),
      limits_(limits),
      owner_(owner),
      wait_(limits.retry),
      retry_timer_(loop, [this] { dial(); }) {
  if (const auto host = parse_host(address_.host)) hosts_.push_back(*host);
  retry_timer_.arm({});
}

bool PeerLink::is_at(const NumericHost& host) const {
  return std::ranges::find(hosts_, host) != hosts_.end();
}

void PeerLink::send(std::string frame) {
  if (!is_up()) return;
  channel_->send(std::move(frame));
  if (channel_->unsent() > limits_.unsent)
    fail(fmt::format("more than {} bytes are not sent", limits_.unsent));
}

void PeerLink::dial() {
  CallerHandshake handshake(owner_.security(), owner_.hello_for(member_));
  secret_ = handshake.secret();
  dial_ = std::make_unique<PeerDial>(
      loop_, address_, std::move(handshake),
      loop::ConnectOptions{.limit = limits_.welcome, .user_timeout = limits_.user_timeout},
      [this](Result<PeerDial::Answer> result) { dialled(std::move(result)); },
      [this](const std::vector<NumericHost>& hosts) { hosts_ = hosts; });
}

void PeerLink::dialled(Result<PeerDial::Answer> result) {
  dial_.reset();
  if (!result) return fail(result.error().message);
  const cluster::Welcome& welcome = result->welcome;
  level_ = welcome.level;
  const bool is_too_old = welcome.level < owner_.level_in_use();
  const bool waits = welcome.status == cluster::WelcomeStatus::waiting;
  if (welcome.status != cluster::WelcomeStatus::ok && !(waits && is_too_old)) {
    wait_ = limits_.last_retry;
    fail(fmt::format("the other node does not accept this node: {}", to_string(welcome.status)));
    return owner_.on_rejected(*this, welcome);
  }
  if (is_too_old) {
    wait_ = limits_.last_retry;
    return fail(fmt::format("it knows only feature level {}, and the cluster uses {}: upgrade it",
                            welcome.level, owner_.level_in_use()));
  }
  channel_ = std::move(result->channel);
  channel_->set_owner(*this);
  wait_ = limits_.retry;
  owner_.on_up(*this);
}

void PeerLink::on_frame(std::string_view frame) {
  const auto version = cluster::later_version(frame);
  fail(version ? cluster::later_version_text(*version)
               : "the other node has sent more than a welcome");
}

void PeerLink::on_closed(std::string_view reason) {
  fail(std::string(reason));
}

void PeerLink::fail(const std::string& reason) {
  channel_.reset();
  secret_.reset();
  retry_timer_.arm(wait_);
  wait_ = std::min(2 * wait_, limits_.last_retry);
  owner_.on_down(*this, reason);
}

}  // namespace tubed::node
