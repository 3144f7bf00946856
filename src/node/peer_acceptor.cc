#include "node/peer_acceptor.h"

#include <iterator>

#include "os/clock.h"

namespace tubed::node {

namespace {

// The most hosts that are remembered.
constexpr std::size_t kMostLaterVersions = 64;
constexpr Duration kKeepaliveIdle = std::chrono::seconds(10);

os::Socket tuned(os::Socket socket) {
  os::tune_connection(socket, kKeepaliveIdle);  // inherited by connections
  return socket;
}

}  // namespace

PeerAcceptor::PeerAcceptor(loop::Loop& loop, os::Log& log, os::Socket socket,
                           const PeerLimits& limits, PeerAcceptorOwner& owner)
    : loop_(loop),
      log_(log),
      limits_(limits),
      owner_(owner),
      listener_(loop, tuned(std::move(socket)), "", "", *this) {}

void PeerAcceptor::on_connection(os::Socket socket) {
  if (pending_.size() >= limits_.pending) refuse(pending_.front(), "too many wait for a hello");
  auto channel = loop::open_channel(loop_, std::move(socket), {});
  if (channel == nullptr) return;
  pending_.emplace_back(*this, std::move(channel));
  pending_.back().place = std::prev(pending_.end());
}

void PeerAcceptor::on_accept_error(const std::string& reason, std::uint64_t refused) {
  log_.limited(os::Log::Level::error, os::monotonic_now(), "cannot take connections of other nodes",
               {{"reason", reason}, {"refused", refused}});
}

void PeerAcceptor::refuse(const Pending& pending, std::string_view reason) {
  log_.limited(os::Log::Level::warning, os::monotonic_now(), "connection of another node refused",
               {{"peer", pending.peer()}, {"reason", reason}});
  pending_.erase(pending.place);
}

// The other node connects again and again: each version of a host is logged once.
void PeerAcceptor::refuse_version(const Pending& pending, std::uint8_t version) {
  const std::string peer = pending.peer();
  const auto key = std::pair(peer.substr(0, peer.rfind(':')), version);
  if (later_versions_.size() >= kMostLaterVersions) later_versions_.clear();
  if (!later_versions_.insert(key).second) return static_cast<void>(pending_.erase(pending.place));
  refuse(pending, cluster::later_version_text(version));
}

PeerAcceptor::Pending::Pending(PeerAcceptor& acceptor, std::unique_ptr<loop::Channel> channel)
    : acceptor_(acceptor),
      channel_(std::make_unique<FrameChannel>(acceptor.loop_, std::move(channel), *this,
                                              kMostControlBytes)),
      timer_(acceptor.loop_, [this] { acceptor_.refuse(*this, "no hello in time"); }) {
  timer_.arm(acceptor.limits_.hello);
}

void PeerAcceptor::Pending::on_frame(std::string_view frame) {
  if (const auto version = cluster::later_version(frame))
    return acceptor_.refuse_version(*this, *version);
  const auto hello = cluster::decode_hello(frame);
  if (!hello) return acceptor_.refuse(*this, "no hello that this version knows");
  if (channel_->read_ahead() != 0) return acceptor_.refuse(*this, "more was sent than a hello");
  PeerAcceptor& acceptor = acceptor_;
  auto channel = std::move(channel_);
  acceptor.pending_.erase(place);
  if (!channel->peer_has_ended()) acceptor.owner_.on_hello(*hello, std::move(channel));
}

void PeerAcceptor::Pending::on_closed(std::string_view reason) {
  acceptor_.refuse(*this, reason);
}

}  // namespace tubed::node
