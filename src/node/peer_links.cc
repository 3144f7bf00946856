// Every event of a connection arrives here from its owner: the acceptor has a Hello, a link is up
// or down, a channel has a frame. Functions call the host last, because the host may change the
// members and thereby destroy the calling link or channel.
#include "node/peer_links.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/planted.h"
#include "cluster/entry.h"
#include "os/clock.h"

namespace tubed::node {

namespace {

using cluster::Hello;
using cluster::Member;
using cluster::NodeId;
using cluster::Purpose;
using cluster::WelcomeStatus;
using os::Log;

// Its hello has the settings of the sender.
constexpr std::string_view kSettingsPath = "/cluster/settings";

std::string text_of(NodeId node) {
  return fmt::format("{:016x}", node);
}

bool contains(const std::vector<Member>& members, NodeId node) {
  return std::any_of(members.begin(), members.end(),
                     [node](const Member& member) { return member.id == node; });
}

// Returns the address of the caller, if it has proved who it is.
std::string stated_in(const CalleeHandshake& handshake) {
  const bool is_proved =
      handshake.secret() || handshake.is_named() || TUBED_PLANTED(address_is_learned_without_proof);
  return is_proved ? handshake.hello().address : std::string();
}

}  // namespace

PeerLinks::PeerLinks(loop::Loop& loop, os::Log& log, PeerHost& host, os::Socket listening,
                     const PeerLimits& limits)
    : loop_(loop),
      log_(log),
      host_(host),
      limits_(limits),
      shared_(log),
      acceptor_(loop, log, std::move(listening), limits_, *this),
      settings_timer_(loop, [this] { send_settings(); }) {}

PeerLinks::~PeerLinks() = default;

// --- The cluster

void PeerLinks::set_facts(const PeerFacts& facts) {
  const bool other = facts.cluster != facts_.cluster || facts.node != facts_.node;
  facts_ = facts;
  shared_.set_own(facts_.node, facts_.settings);
  if (other) close_links();
  send_settings();
}

// Dials all members again.
void PeerLinks::close_links() {
  outgoing_.clear();
  incoming_.clear();
  open_links();
}

void PeerLinks::set_members(const std::vector<Member>& members) {
  const std::vector<Member> former = std::exchange(members_, members);
  std::erase_if(incoming_, [&](const auto& incoming) {
    const auto& [node, connection] = incoming;
    const bool knows_more = connection->configuration_index > facts_.configuration_index;
    if (!is_member(node)) return contains(former, node) || !knows_more;
    return connection->is_named && !may_have_name(node, connection->stated);
  });
  std::erase_if(outgoing_, [this](const auto& outgoing) {
    PeerLink& link = *outgoing.second.link;
    return std::none_of(members_.begin(), members_.end(), [&](const Member& member) {
      const Member& dialled = link.member();
      return member.id == dialled.id && (member.address == dialled.address || link.adopt(member));
    });
  });
  shared_.set_members(members_);
  open_links();
  // A caller may have sent its Hello before this node knew it as a member.
  for (const auto& [node, connection] : incoming_) {
    if (contains(former, node)) continue;
    shared_.set_of_member(node, connection->settings);
    note_host(node, connection->channel->peer());
  }
}

void PeerLinks::open_links() {
  for (const Member& member : members_) {
    if (member.id == facts_.node || outgoing_.contains(member.id)) continue;
    const auto address = cluster::parse_member_address(member.address);
    if (!address) {
      log_.limited(Log::Level::error, os::monotonic_now(), "a member has no address to dial",
                   {{"id", text_of(member.id)}, {"address", member.address}});
      continue;
    }
    Outgoing& outgoing = outgoing_[member.id];
    if (const auto caller = incoming_.find(member.id); caller != incoming_.end())
      outgoing.level = caller->second->level;
    outgoing.link = std::make_unique<PeerLink>(loop_, member, *address, limits_, *this);
    if (const auto other = learned_.find(member.id); other != learned_.end())
      outgoing.link->set_learned(other->second);
  }
}

void PeerLinks::set_learned(const LearnedAddresses::All& addresses) {
  learned_ = addresses;
  for (const auto& [node, outgoing] : outgoing_) {
    const auto other = learned_.find(node);
    outgoing.link->set_learned(other == learned_.end() ? std::nullopt
                                                       : std::optional(other->second));
  }
}

std::string PeerLinks::address_of(const Member& member) const {
  const auto found = outgoing_.find(member.id);
  return found == outgoing_.end() ? member.address : to_string(found->second.link->address());
}

std::string PeerLinks::learned_address(NodeId node) const {
  const auto found = outgoing_.find(node);
  if (found == outgoing_.end()) return {};
  const PeerLink& link = *found->second.link;
  return link.is_up() && link.is_at_learned() ? link.address().endpoint() : std::string();
}

bool PeerLinks::set_secrets(const ClusterSecrets& secrets) {
  const ClusterSecrets former = std::exchange(security_.secrets, secrets);
  const auto is_valid = [&](const std::optional<ClusterSecret>& secret) {
    return secret ? secrets.contains(*secret) : secrets.empty();
  };
  acceptor_.security_changed();
  std::erase_if(incoming_, [&](const auto& one) { return !is_valid(one.second->secret); });
  std::erase_if(outgoing_, [&](const auto& one) { return !is_valid(one.second.link->secret()); });
  open_links();
  const bool all_stay = std::ranges::all_of(
      former.all(), [&](const ClusterSecret& secret) { return secrets.contains(secret); });
  return !all_stay || former.empty() != secrets.empty();
}

bool PeerLinks::set_tls(NodeTls tls) {
  const NodeTls former = std::exchange(security_.tls, std::move(tls));
  if (former == security_.tls) return false;
  acceptor_.security_changed();
  const bool both = former != nullptr && security_.tls != nullptr;
  if (both && former->has_authorities_of(*security_.tls)) return false;
  close_links();
  return true;
}

bool PeerLinks::is_member(NodeId node) const {
  return contains(members_, node);
}

WelcomeStatus PeerLinks::usual_status(const Hello& hello) const {
  if (facts_.has_state && std::ranges::find(former_, hello.cluster) != former_.end())
    return WelcomeStatus::superseded;
  // The operator has given the address of another node.
  if (!hello.name.empty() && hello.name != cluster::name_in(facts_.address))
    return WelcomeStatus::other_node;
  if (!facts_.has_state) return WelcomeStatus::waiting;
  if (hello.cluster != facts_.cluster) return WelcomeStatus::other_cluster;
  const bool to_any = hello.purpose == Purpose::request && hello.to == 0;
  if ((hello.to != facts_.node && !to_any) || hello.from == facts_.node)
    return WelcomeStatus::other_node;
  const bool knows_more = hello.configuration_index > facts_.configuration_index;
  const bool may_be_member = knows_more && hello.purpose == Purpose::frames;
  if (!is_member(hello.from) && !may_be_member) return WelcomeStatus::not_a_member;
  return hello.level < facts_.level ? WelcomeStatus::too_old : WelcomeStatus::ok;
}

// --- Links that this node has dialled

void PeerLinks::send(NodeId to, std::string frame) {
  const auto found = outgoing_.find(to);
  if (found != outgoing_.end()) found->second.link->send(std::move(frame));
}

bool PeerLinks::is_connected(NodeId node) const {
  const auto found = outgoing_.find(node);
  return found != outgoing_.end() && found->second.link->is_up();
}

cluster::Level PeerLinks::connected_level(NodeId node) const {
  const auto found = outgoing_.find(node);
  return found != outgoing_.end() && found->second.link->is_up() ? found->second.link->level() : 0;
}

cluster::Level PeerLinks::last_level(NodeId node) const {
  const auto found = outgoing_.find(node);
  if (found == outgoing_.end()) return 0;
  const cluster::Level connected = connected_level(node);
  if (connected != 0) return connected;
  return found->second.level != 0 ? found->second.level : found->second.link->level();
}

std::string PeerLinks::last_failure(NodeId node) const {
  const auto found = outgoing_.find(node);
  return found == outgoing_.end() || found->second.waits ? std::string() : found->second.reason;
}

std::size_t PeerLinks::unsent(NodeId node) const {
  const auto found = outgoing_.find(node);
  return found == outgoing_.end() ? 0 : found->second.link->unsent();
}

Hello PeerLinks::hello_for(const Member& member) const {
  return {.purpose = Purpose::frames,
          .level = cluster::kFeatureLevel,
          .cluster = facts_.cluster,
          .from = facts_.node,
          .to = member.id,
          .address = facts_.address,
          .configuration_index = facts_.configuration_index,
          .name = std::string(cluster::name_in(member.address)),
          .invites = host_.may_invite(member.id),
          .settings = shown_settings()};
}

const SettingDigests& PeerLinks::shown_settings() const {
  static const SettingDigests kNone;
  return facts_.level < cluster::kLevelOfFields ? kNone : facts_.settings;
}

// Sends them to members whose link was up before they changed. A member of an earlier version
// answers that it does not know the request.
void PeerLinks::send_settings() {
  const SettingDigests& shown = shown_settings();
  for (auto& [node, outgoing] : outgoing_) {
    const bool knows = outgoing.knows == shown || outgoing.is_sent_settings;
    if (knows || outgoing.link == nullptr || !outgoing.link->is_up()) continue;
    outgoing.is_sent_settings = true;
    request(to_string(outgoing.link->address()), {.path = std::string(kSettingsPath), .body = "{}"},
            [this, node = node, sent = shown](const Result<cluster::Response>& response) {
              const auto found = outgoing_.find(node);
              if (found == outgoing_.end()) return;
              found->second.is_sent_settings = false;
              if (response) found->second.knows = sent;
              settings_timer_.arm(response ? Duration::zero() : limits_.last_retry);
            });
  }
}

void PeerLinks::on_up(PeerLink& link) {
  Outgoing& outgoing = outgoing_[link.member().id];
  outgoing.reason.clear();
  outgoing.waits = false;
  outgoing.level = link.level();
  outgoing.knows = link.sent_settings();
  if (outgoing.knows != shown_settings()) settings_timer_.arm(Duration::zero());
  log_.limited(Log::Level::info, os::monotonic_now(), "connected to another node",
               {{"address", to_string(link.address())},
                {"id", text_of(link.member().id)},
                {"level", std::uint64_t{std::min(link.level(), cluster::kFeatureLevel)}}});
}

void PeerLinks::on_down(PeerLink& link, const std::string& reason) {
  Outgoing& outgoing = outgoing_[link.member().id];
  outgoing.waits = false;
  if (std::exchange(outgoing.reason, reason) == reason) return;
  log_.limited(
      Log::Level::info, os::monotonic_now(), "not connected to another node",
      {{"address", link.member().address}, {"id", text_of(link.member().id)}, {"reason", reason}});
}

void PeerLinks::on_rejected(PeerLink& link, const cluster::Welcome& welcome) {
  const NodeId by = link.member().id;
  outgoing_[by].waits = welcome.status == WelcomeStatus::waiting;
  host_.begin_tick();
  host_.on_rejected(by, welcome);
}

// --- Connections that other nodes have dialled

std::string PeerLinks::answer(const CalleeHandshake& handshake, WelcomeStatus status) const {
  return handshake.answer({.status = status,
                           .level = cluster::kFeatureLevel,
                           .configuration_index = facts_.configuration_index,
                           .name = std::string(cluster::name_in(facts_.address))});
}

std::size_t PeerLinks::members_at(const NumericHost& host) const {
  const auto is_there = [&](const auto& outgoing) {
    const Outgoing& one = outgoing.second;
    return one.link != nullptr && (one.link->is_at(host) || one.seen_at == host);
  };
  return static_cast<std::size_t>(std::ranges::count_if(outgoing_, is_there));
}

// Precondition: the caller is to be accepted.
bool PeerLinks::has_room_for(const Hello& hello) const {
  if (hello.purpose == Purpose::request) return incoming_requests_.size() < limits_.requests;
  if (hello.purpose == Purpose::fetch || is_member(hello.from) || incoming_.contains(hello.from))
    return true;
  const auto strangers = std::ranges::count_if(
      incoming_, [this](const auto& incoming) { return !is_member(incoming.first); });
  return static_cast<std::size_t>(strangers) < limits_.strangers;
}

// A certificate proves a name, and the Hello names a node: they belong together. A caller that is
// not known yet may have any id.
bool PeerLinks::is_itself(const CalleeHandshake& handshake) const {
  return !handshake.is_named() || may_have_name(handshake.hello().from, handshake.hello().address);
}

bool PeerLinks::may_have_name(NodeId node, std::string_view address) const {
  return std::ranges::none_of(members_, [&](const Member& member) {
    return member.id == node && cluster::name_in(member.address) != cluster::name_in(address);
  });
}

void PeerLinks::on_hello(const CalleeHandshake& handshake, std::unique_ptr<FrameChannel> channel) {
  const Hello& hello = handshake.hello();
  host_.begin_tick();
  WelcomeStatus status = is_itself(handshake) ? host_.judge(hello) : WelcomeStatus::other_node;
  if (status == WelcomeStatus::ok && !has_room_for(hello)) status = WelcomeStatus::busy;
  if (status == WelcomeStatus::ok) return accept(handshake, std::move(channel));
  // A caller with the first level does not know too_old, and tries again after busy.
  const bool knows_too_old = hello.level > cluster::kFirstLevel;
  WelcomeStatus sent = status;
  if (status == WelcomeStatus::too_old && !knows_too_old) sent = WelcomeStatus::busy;
  if (status == WelcomeStatus::superseded && hello.level < cluster::kLevelOfNames)
    sent = WelcomeStatus::other_cluster;
  channel->send(answer(handshake, sent));
  channel.reset();
  const std::string reason =
      status == WelcomeStatus::too_old
          ? fmt::format("it knows only feature level {}, and the cluster uses {}: upgrade it",
                        hello.level, facts_.level)
          : std::string(to_string(status));
  log_.limited(Log::Level::info, os::monotonic_now(), "another node was not accepted",
               {{"address", hello.address}, {"id", text_of(hello.from)}, {"answer", reason}});
  host_.on_turned_away(hello, status);
}

void PeerLinks::accept(const CalleeHandshake& handshake, std::unique_ptr<FrameChannel> channel) {
  const Hello& hello = handshake.hello();
  note_host(hello.from, channel->peer());
  shared_.set_of_member(hello.from, hello.settings);
  switch (hello.purpose) {
    case Purpose::frames: {
      if (const auto dialled = outgoing_.find(hello.from); dialled != outgoing_.end())
        dialled->second.level = hello.level;
      incoming_.erase(hello.from);  // before the Welcome
      FrameChannel& accepted = *channel;
      incoming_[hello.from] = std::make_unique<Incoming>(*this, handshake, std::move(channel));
      accepted.send(answer(handshake, WelcomeStatus::ok));
      return note_address(hello.from);
    }
    case Purpose::request: {
      FrameChannel& accepted = *channel;
      incoming_requests_.push_back(
          std::make_shared<IncomingRequest>(loop_, std::move(channel), limits_.request, *this));
      return accepted.send(answer(handshake, WelcomeStatus::ok));
    }
    case Purpose::fetch:
    case Purpose::client: {
      channel->send(answer(handshake, WelcomeStatus::ok));
      if (channel->unsent() != 0) return;  // not even the first bytes: the connection is lost
      loop::Connection connection = channel->release().connection;
      channel.reset();
      if (!connection) return;
      if (hello.purpose == Purpose::fetch) return host_.on_fetch(hello, std::move(connection));
      return host_.on_client(hello, std::move(connection));
    }
  }
}

// A member that has moved is known again even before its name is resolved again.
void PeerLinks::note_host(NodeId from, std::string_view peer) {
  const auto known = outgoing_.find(from);
  if (known != outgoing_.end() && known->second.link->may_have_moved())
    known->second.seen_at = os::host_of(peer);
}

// The caller was accepted for frames.
void PeerLinks::note_address(NodeId from) {
  const std::string stated = stated_address(from);
  const auto member = std::ranges::find(members_, from, &Member::id);
  if (!stated.empty() && member != members_.end()) host_.on_stated_address(*member, stated);
}

std::string PeerLinks::stated_address(NodeId node) const {
  const auto found = incoming_.find(node);
  return found == incoming_.end() ? std::string() : found->second->stated;
}

PeerLinks::Incoming::Incoming(PeerLinks& links, const CalleeHandshake& handshake,
                              std::unique_ptr<FrameChannel> frames)
    : node(handshake.hello().from),
      configuration_index(handshake.hello().configuration_index),
      secret(handshake.secret()),
      is_named(handshake.is_named()),
      stated(stated_in(handshake)),
      level(handshake.hello().level),
      settings(handshake.hello().settings),
      channel(std::move(frames)),
      links_(links) {
  channel->set_owner(*this);
  channel->set_most_frame_bytes(FrameChannel::kAnyFrame);
}

void PeerLinks::Incoming::on_frame(std::string_view frame) {
  PeerLinks& links = links_;  // the host may destroy the connection
  const NodeId from = node;
  links.host_.begin_tick();
  if (const auto version = cluster::later_version(frame))
    return links.refuse_frame(from, cluster::later_version_text(*version));
  const std::string_view fault = links.host_.on_frame(from, frame);
  if (!fault.empty()) links.refuse_frame(from, fmt::format("a frame is refused: {}", fault));
}

void PeerLinks::Incoming::on_closed(std::string_view reason) {
  links_.log_.limited(Log::Level::debug, os::monotonic_now(), "connection of another node closed",
                      {{"id", text_of(node)}, {"reason", reason}});
  links_.incoming_.erase(NodeId{node});
}

// The other node connects again and may send the same: each reason is logged once.
void PeerLinks::refuse_frame(NodeId from, std::string_view reason) {
  incoming_.erase(from);
  if (const auto known = outgoing_.find(from); known != outgoing_.end()) {
    if (known->second.refusal == reason) return;
    known->second.refusal = reason;
  }
  log_.limited(Log::Level::warning, os::monotonic_now(), "connection of another node closed",
               {{"id", text_of(from)}, {"reason", reason}});
}

// --- Requests

CallerHandshake PeerLinks::begin_client(const Member& member,
                                        const cluster::ForwardedClient& client) const {
  Hello hello = hello_for(member);
  hello.purpose = Purpose::client;
  hello.invites = false;
  hello.client = client;
  hello.settings.clear();
  return {security_, std::move(hello)};
}

void PeerLinks::request(std::string_view address, const cluster::Request& request,
                        PeerRequest::Done done) {
  Hello hello = hello_for({.id = 0, .address = std::string(address)});
  hello.purpose = Purpose::request;
  requests_.emplace_back();
  const auto place = std::prev(requests_.end());
  *place = std::make_unique<PeerRequest>(
      loop_, address, CallerHandshake(security_, std::move(hello)), request, limits_,
      [this, place, answered = std::move(done)](Result<cluster::Response> result) {
        requests_.erase(place);
        host_.begin_tick();
        answered(std::move(result));
      });
}

void PeerLinks::on_request(IncomingRequest& incoming, const cluster::Request& request) {
  if (request.path == kSettingsPath) return incoming.reply({.status = 200, .body = "{}"});
  const auto found = std::find_if(incoming_requests_.begin(), incoming_requests_.end(),
                                  [&](const auto& other) { return other.get() == &incoming; });
  host_.begin_tick();
  host_.on_request(
      request, [weak = std::weak_ptr<IncomingRequest>(*found)](const cluster::Response& response) {
        if (const auto there = weak.lock()) there->reply(response);
      });
}

void PeerLinks::on_request_ended(IncomingRequest& incoming) {
  incoming_requests_.remove_if([&](const auto& other) { return other.get() == &incoming; });
}

}  // namespace tubed::node
