#include "node/peer_acceptor.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "os/clock.h"

namespace tubed::node {

namespace {

// The most hosts and reasons that are remembered.
constexpr std::size_t kMostLogged = 64;
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
      handshakes_(loop),
      listener_(loop, tuned(std::move(socket)), "", "", *this) {
  // pending_ has the bound of their number.
  handshakes_.set_limits(
      {.timeout = limits.hello, .pending = std::numeric_limits<std::size_t>::max()});
}

void PeerAcceptor::on_connection(os::Socket socket) {
  const std::string peer = os::peer_address(socket);
  std::optional<NumericHost> host = os::host_of(peer);
  const std::size_t members = host ? owner_.members_at(*host) : 0;
  if (members == 0) host.reset();
  refuse_excess(host, members == 0 ? limits_.strangers
                                   : members * limits_.pending_of_member + limits_.requests);
  pending_.emplace_back(*this, peer, host);
  pending_.back().place = std::prev(pending_.end());
  if (!pending_.back().begin(std::move(socket))) pending_.pop_back();
}

// Leaves room for one more connection from the host, or from all hosts without members.
void PeerAcceptor::refuse_excess(const std::optional<NumericHost>& host, std::size_t most) {
  const auto is_same = [&](const Pending& pending) { return pending.host == host; };
  if (static_cast<std::size_t>(std::ranges::count_if(pending_, is_same)) < most) return;
  refuse(*std::ranges::find_if(pending_, is_same), "too many wait for a hello");
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

// For a reason that lasts until an operator acts. The other node connects again and again: each
// reason is logged once for its host.
void PeerAcceptor::refuse_once(const Pending& pending, std::string_view reason) {
  const std::string peer = pending.peer();
  const auto key = std::pair(peer.substr(0, peer.rfind(':')), std::string(reason));
  if (logged_.size() >= kMostLogged) logged_.clear();
  if (!logged_.insert(key).second) return static_cast<void>(pending_.erase(pending.place));
  refuse(pending, reason);
}

void PeerAcceptor::security_changed() {
  pending_.clear();
  logged_.clear();
}

PeerAcceptor::Pending::Pending(PeerAcceptor& acceptor, std::string peer,
                               std::optional<NumericHost> host_of_members)
    : host(host_of_members),
      acceptor_(acceptor),
      peer_(std::move(peer)),
      handshake_(acceptor.owner_.security()),
      timer_(acceptor.loop_, [this] {
        acceptor_.refuse(*this, channel_ == nullptr      ? "no handshake of TLS in time"
                                : handshake_.has_hello() ? "no proof in time"
                                                         : "no hello in time");
      }) {
  timer_.arm(acceptor.limits_.hello);
}

PeerAcceptor::Pending::~Pending() {
  if (handshake_.tls() != nullptr) acceptor_.handshakes_.forget(*this);
}

bool PeerAcceptor::Pending::begin(os::Socket socket) {
  if (handshake_.tls() != nullptr)
    return acceptor_.handshakes_.begin(std::move(socket), handshake_.tls(), *this);
  auto channel = loop::open_channel(acceptor_.loop_, std::move(socket), {});
  if (channel == nullptr) return false;
  begin_frames(std::move(channel));
  return true;
}

void PeerAcceptor::Pending::begin_frames(std::unique_ptr<loop::Channel> channel) {
  channel_ =
      std::make_unique<FrameChannel>(acceptor_.loop_, std::move(channel), *this, kMostHelloBytes);
}

void PeerAcceptor::Pending::on_secured(std::unique_ptr<loop::Channel> channel,
                                       const loop::TlsPeer& peer) {
  handshake_.set_caller(peer);
  begin_frames(std::move(channel));
}

void PeerAcceptor::Pending::on_handshake_failed(const std::string&, std::string_view reason) {
  if (reason == loop::TlsSession::kNoTls)
    return acceptor_.refuse_once(*this, "it has no cluster.tls, and this node has it");
  acceptor_.refuse_once(*this, fmt::format("TLS: {}", reason));
}

// Returns whether the handshake is complete.
Result<bool> PeerAcceptor::Pending::take(std::string_view frame) {
  if (!handshake_.has_hello()) {
    std::string challenge = TRY(handshake_.take_hello(frame));
    if (channel_->read_ahead() != 0) return Error{"more was sent than a hello"};
    if (challenge.empty()) return true;
    channel_->set_most_frame_bytes(kProofFrameBytes);
    channel_->send(std::move(challenge));
    return false;
  }
  TRY(handshake_.take_proof(frame));
  if (channel_->read_ahead() != 0) return Error{"more was sent than a proof"};
  return true;
}

void PeerAcceptor::Pending::on_frame(std::string_view frame) {
  if (const auto version = cluster::later_version(frame))
    return acceptor_.refuse_once(*this, cluster::later_version_text(*version));
  const auto complete = take(frame);
  if (!complete) {
    const std::string& reason = complete.error().message;
    return handshake_.settings_differ() ? acceptor_.refuse_once(*this, reason)
                                        : acceptor_.refuse(*this, reason);
  }
  if (!*complete) return;
  PeerAcceptor& acceptor = acceptor_;
  const CalleeHandshake handshake = handshake_;
  auto channel = std::move(channel_);
  acceptor.pending_.erase(place);
  if (!channel->peer_has_ended()) acceptor.owner_.on_hello(handshake, std::move(channel));
}

void PeerAcceptor::Pending::on_closed(std::string_view reason) {
  if (reason == FrameChannel::kTls)
    return acceptor_.refuse_once(*this, "it has cluster.tls, and this node has none");
  acceptor_.refuse(*this, reason);
}

}  // namespace tubed::node
