#include "node/peer_link.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace tubed::node {

PeerLink::PeerLink(loop::Loop& loop, cluster::Member member, cluster::MemberAddress address,
                   const PeerLimits& limits, PeerLinkOwner& owner)
    : loop_(loop),
      member_(std::move(member)),
      own_(std::move(address)),
      limits_(limits),
      owner_(owner),
      wait_(limits.retry),
      retry_timer_(loop, [this] { dial(); }) {
  retry_timer_.arm({});
}

PeerLink::Place::Place(cluster::MemberAddress place_address)
    : address(std::move(place_address)), is_named(address.has_host_name()) {
  if (const auto host = parse_host(address.host)) hosts.push_back(*host);
}

bool PeerLink::is_at(const NumericHost& host) const {
  const auto has = [&](const Place& place) {
    return std::ranges::find(place.hosts, host) != place.hosts.end();
  };
  return has(own_) || (learned_ && has(*learned_));
}

// An attempt at the member's own address, and a connection there, stays.
void PeerLink::set_learned(const std::optional<cluster::MemberAddress>& address) {
  const bool had = learned_.has_value();
  if (had == address.has_value() && (!had || learned_->address == *address)) return;
  if (tries_learned_ && (is_up() || dial_ != nullptr)) {
    dial_.reset();
    fail("the member has another address now");
  }
  was_at_learned_ = is_second_ = false;
  if (!address) {
    learned_.reset();
    tries_learned_ = false;
    return;
  }
  learned_.emplace(*address);
  if (is_up() || dial_ != nullptr) return;
  if (!had) tries_learned_ = true;  // its own has failed, or is older
  wait_ = limits_.retry;
  retry_timer_.arm({});
}

bool PeerLink::adopt(const cluster::Member& member) {
  const auto address = cluster::parse_member_address(member.address);
  const bool is_there = is_up() && tries_learned_;
  if (!is_there || member.id != member_.id || !address || learned_->address != *address)
    return false;
  member_ = member;
  own_ = std::move(*learned_);
  learned_.reset();
  tries_learned_ = was_at_learned_ = false;
  return true;
}

const cluster::MemberAddress& PeerLink::address() const {
  return is_at_learned() ? learned_->address : own_.address;
}

void PeerLink::send(std::string frame) {
  if (!is_up()) return;
  channel_->send(std::move(frame));
  if (channel_->unsent() > limits_.unsent)
    fail(fmt::format("more than {} bytes are not sent", limits_.unsent));
}

void PeerLink::dial() {
  cluster::Hello hello = owner_.hello_for(member_);
  sent_settings_ = hello.settings;
  CallerHandshake handshake(owner_.security(), std::move(hello));
  secret_ = handshake.secret();
  dial_ = std::make_unique<PeerDial>(
      loop_, next_place().address, std::move(handshake),
      loop::ConnectOptions{.limit = limits_.welcome, .user_timeout = limits_.user_timeout},
      [this](Result<PeerDial::Answer> result) { dialled(std::move(result)); },
      [this](const std::vector<NumericHost>& hosts) { next_place().hosts = hosts; });
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
  was_at_learned_ = tries_learned_;
  is_second_ = false;
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
  const bool takes_turns = learned_ && !is_up();
  channel_.reset();
  secret_.reset();
  if (takes_turns) tries_learned_ = !tries_learned_;
  is_second_ = takes_turns && !is_second_;
  retry_timer_.arm(is_second_ ? Duration::zero() : wait_);
  if (!is_second_) wait_ = std::min(2 * wait_, limits_.last_retry);
  owner_.on_down(*this, reason);
}

}  // namespace tubed::node
