#include "node/leadership.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "json/json.h"
#include "node/node_owner.h"
#include "os/process.h"

namespace tubed::node {

using cluster::Member;
using cluster::MemberRole;
using cluster::Request;
using cluster::Response;

namespace {

// How often standbys are checked.
constexpr Duration kStandbyInterval = std::chrono::milliseconds(20);
// A node that cannot store entries asks another node to lead at most this often, because the other
// may be in the same state.
constexpr Duration kHandOverInterval = std::chrono::seconds(10);

// A voter that has not answered for so long is not counted on when another is removed.
constexpr Duration kSilent = std::chrono::seconds(5);

// Attempts to pass on leadership. Each takes at most an election timeout.
constexpr int kAttempts = 3;

const Response kAccepted{.status = 200, .body = "{}"};

std::string text_of(const json::Json& object, std::string_view key) {
  const json::Json* value = object.find(key);
  const std::string* text = value == nullptr ? nullptr : value->text();
  return text == nullptr ? std::string() : *text;
}

bool is_forced(const json::Json& object) {
  const json::Json* const force = object.find("force");
  return force != nullptr && force->truth() == true;
}

auto named(const std::vector<Member>& members, std::string_view name) {
  return std::ranges::find_if(
      members, [name](const Member& member) { return cluster::name_in(member.address) == name; });
}

}  // namespace

Response refusal(std::uint16_t status, const std::string& reason) {
  return {.status = status, .body = json::to_line(json::Json{{"error", reason}})};
}

std::optional<cluster::MemberAddress> address_in(const Request& request) {
  const auto object = json::Json::parse(request.body);
  if (!object) return std::nullopt;
  return cluster::parse_member_address(
      fmt::format("{}@{}", text_of(*object, "name"), text_of(*object, "address")));
}

Response Leadership::run(const Request& request) {
  const auto object = json::Json::parse(request.body);
  if (!object) return refusal(400, "the body is not a JSON object");
  const std::string name = text_of(*object, "name");
  if (request.path == "/cluster/transfer") return transfer(name);
  if (!cluster::is_node_name(name)) return refusal(400, "\"name\" is not the name of a node");
  if (request.path == "/cluster/remove") return remove(name, is_forced(*object));
  if (request.path == "/cluster/add") return add(name, text_of(*object, "address"), false);
  if (request.path == "/cluster/add-standby") return add(name, text_of(*object, "address"), true);
  if (request.path == "/cluster/promote") return promote(name);
  if (request.path == kSetAddressPath) return set_address(request);
  return refusal(404, kNoSuchRequest);
}

bool Leadership::names_itself(const Request& request) const {
  const auto object = json::Json::parse(request.body);
  const std::vector<Member> members = node_.members();
  const auto member = object ? named(members, text_of(*object, "name")) : members.end();
  return member != members.end() && member->id == node_.id();
}

// An address that the cluster cannot use for a node with that name.
std::optional<Response> Leadership::refuse_address(const cluster::MemberAddress& address) const {
  if (address.has_host_name() && node_.level() < cluster::kLevelOfNames) {
    return refusal(409, fmt::format("{} has the name of a host, which needs feature level {}, and "
                                    "the cluster uses {}: upgrade all nodes, or give a numeric "
                                    "address",
                                    address.endpoint(), cluster::kLevelOfNames, node_.level()));
  }
  for (const Member& member : node_.members()) {
    const auto other = cluster::parse_member_address(member.address);
    if (other && other->name != address.name && other->endpoint() == address.endpoint())
      return refusal(409, fmt::format("{} is the address of {}", address.endpoint(), other->name));
  }
  return std::nullopt;
}

// The path of a standby that stays is one of its own: a leader of an earlier version refuses it,
// where it would ignore an unknown key and make the node a voter.
Response Leadership::add(const std::string& name, const std::string& address, bool stays) {
  const auto parsed = cluster::parse_member_address(fmt::format("{}@{}", name, address));
  if (!parsed) return refusal(400, kNoAddress);
  if (stays && node_.level() < cluster::kLevelOfStandbys) {
    return refusal(409, fmt::format("a standby that stays needs feature level {}, and the cluster "
                                    "uses {}: upgrade all nodes",
                                    cluster::kLevelOfStandbys, node_.level()));
  }
  std::vector<Member> members = node_.members();
  if (named(members, name) != members.end())
    return refusal(409, fmt::format("a node with the name {} is a member", name));
  if (auto refused = refuse_address(*parsed)) return std::move(*refused);
  if (members.size() >= CORE_MOST_MEMBERS) return refusal(409, "the cluster has too many members");
  members.push_back({.id = os::random_number(),
                     .role = MemberRole::standby,
                     .address = cluster::to_string(*parsed),
                     .stays = stays});
  if (!node_.change_members(members))
    return refusal(503, "another change of the members is under way");
  log_.info(stays ? "adding a standby that stays" : "adding a node",
            {{"name", name}, {"address", parsed->endpoint()}});
  return kAccepted;
}

// promote_standbys() makes it a voter when it has caught up.
Response Leadership::promote(const std::string& name) {
  std::vector<Member> members = node_.members();
  const auto found = named(members, name);
  if (found == members.end()) return refusal(404, fmt::format("no member is named {}", name));
  Member& member = members[static_cast<std::size_t>(found - members.begin())];
  if (!member.stays) return kAccepted;
  member.stays = false;
  if (!node_.change_members(members))
    return refusal(503, "another change of the members is under way");
  log_.info("a standby no longer stays one", {{"name", name}});
  return kAccepted;
}

// The member keeps its id, its role and its data; the voters are the same before and after, so each
// majority is one by either configuration. A node without this change dials the former address,
// and that which the member states (learned_addresses.h).
Response Leadership::set_address(const Request& request) {
  const auto parsed = address_in(request);
  if (!parsed) return refusal(400, kNoAddress);
  std::vector<Member> members = node_.members();
  const auto found = named(members, parsed->name);
  if (found == members.end())
    return refusal(404, fmt::format("no member is named {}", parsed->name));
  if (auto refused = refuse_address(*parsed)) return std::move(*refused);
  Member& member = members[static_cast<std::size_t>(found - members.begin())];
  const std::string former = std::exchange(member.address, cluster::to_string(*parsed));
  if (former == member.address) return kAccepted;
  if (!node_.change_members(members))
    return refusal(503, "another change of the members is under way");
  log_.info("changing the address of a node",
            {{"name", parsed->name}, {"from", former}, {"to", member.address}});
  return kAccepted;
}

// Returns the names of voters other than `without` that have not answered for some time, if those
// that answer are no majority without it; otherwise an empty text.
std::string Leadership::lost_with(const std::vector<Member>& members, const Member& without) const {
  std::size_t voters = 0;
  std::string silent;
  std::size_t silent_voters = 0;
  for (const Member& member : members) {
    if (member.role != MemberRole::voter || member.id == without.id) continue;
    ++voters;
    if (member.id == node_.id()) continue;
    const auto since = node_.silent_since(member.id);
    if (since && NodeOwner::now() - *since < kSilent) continue;
    ++silent_voters;
    silent += fmt::format("{}{}", silent.empty() ? "" : ", ", cluster::name_in(member.address));
  }
  return 2 * (voters - silent_voters) > voters ? std::string() : silent;
}

// `force`: also if those voters that answer are no majority without this one.
std::optional<Response> Leadership::refuse_removal(const std::vector<Member>& members,
                                                   const std::string& name, bool force) const {
  const auto member = named(members, name);
  if (member == members.end()) return refusal(404, fmt::format("no member is named {}", name));
  if (member->role != MemberRole::voter) return std::nullopt;
  if (std::ranges::count(members, MemberRole::voter, &Member::role) == 1)
    return refusal(409, fmt::format("{} is the only voter", name));
  if (force) return std::nullopt;
  const std::string silent = lost_with(members, *member);
  if (silent.empty()) return std::nullopt;
  return refusal(409, fmt::format("without {}, no majority of the voters answers: {} is silent; "
                                  "--force removes it all the same, and then no node serves",
                                  name, silent));
}

std::optional<Response> Leadership::refuse_removal(const Request& request) const {
  const auto object = json::Json::parse(request.body);
  if (!object) return refusal(400, "the body is not a JSON object");
  return refuse_removal(node_.members(), text_of(*object, "name"), is_forced(*object));
}

Response Leadership::remove(const std::string& name, bool force) {
  std::vector<Member> members = node_.members();
  if (auto refused = refuse_removal(members, name, force)) return std::move(*refused);
  members.erase(members.begin() + (named(members, name) - members.begin()));
  if (!node_.change_members(members))
    return refusal(503, "another change of the members is under way, or the others lag behind");
  log_.info("removing a node", {{"name", name}});
  return kAccepted;
}

Response Leadership::transfer(const std::string& name) {
  const std::vector<Member> members = node_.members();
  cluster::NodeId to = 0;
  if (!name.empty()) {
    const auto member = named(members, name);
    if (member == members.end()) return refusal(404, fmt::format("no member is named {}", name));
    if (member->role != MemberRole::voter) return refusal(409, fmt::format("{} has no vote", name));
    if (member->id == node_.id()) return kAccepted;  // the leader itself
    to = member->id;
  }
  if (is_handing_over()) return refusal(503, "a transfer is under way");
  return hand_over(to) ? kAccepted : refusal(409, "there is no other voter");
}

bool Leadership::hand_over(cluster::NodeId to) {
  const std::vector<Member> members = node_.members();
  const auto can_follow = [&](const Member& member) {
    return member.id != node_.id() && member.role == MemberRole::voter;
  };
  if (std::ranges::none_of(members, can_follow)) return false;
  if (step_ == Step::none) {
    step_ = Step::wanted;
    successor_ = to;
    attempts_ = 0;
    const auto successor = std::ranges::find(members, to, &Member::id);
    log_.info("passing leadership on",
              {{"to", successor == members.end() ? "any voter" : successor->address}});
  }
  return true;
}

void Leadership::hand_over_soon(Time now) {
  if (is_handing_over() || now < hand_over_again_at_) return;
  hand_over_again_at_ = now + kHandOverInterval;
  const std::vector<Member> members = node_.members();
  const auto can_store = [this](const Member& member) {
    return member.id != node_.id() && member.role == MemberRole::voter && node_.has_room(member.id);
  };
  const auto successor = std::ranges::find_if(members, can_store);
  if (successor != members.end() && hand_over(successor->id))
    log_.warning("the disk of this node stores no entries");
}

void Leadership::go_on(Time now) {
  if (step_ == Step::begun && !node_.is_transferring())
    try_again("the other node has not taken over");
  if (step_ == Step::wanted && facts_.is_clean()) {
    step_ = Step::begun;
    if (!node_.transfer(successor_)) try_again("no voter can take over now");
  }
  if (now < look_at_) return;
  look_at_ = now + kStandbyInterval;
  promote_standbys();
}

// A voter may have been unable to take over because it has just started or lacks an entry.
void Leadership::try_again(std::string_view reason) {
  const bool again = ++attempts_ < kAttempts;
  step_ = again ? Step::wanted : Step::none;
  if (!again) log_.warning("leadership was not passed on", {{"reason", reason}});
}

// A leader that was stopped may read answers that are old. Its lease has ended then.
void Leadership::promote_standbys() {
  if (!node_.has_lease()) return;
  const std::vector<Member> members = node_.members();
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].role != MemberRole::standby || members[i].stays) continue;
    std::vector<Member> next = members;
    next[i].role = MemberRole::voter;
    if (!node_.change_members(next)) continue;
    return log_.info("a node has caught up and votes", {{"node", members[i].address}});
  }
}

}  // namespace tubed::node
