// The faults of a life. Each kind happens at random times, with the average number in the Nature.
// end_faults() repairs everything and starts every node.
#include <algorithm>
#include <string>

#include "cluster/membership.h"
#include "cluster/message.h"
#include "tests/cluster/text.h"
#include "tests/cluster/world.h"

namespace tubed::cluster_test {

using namespace std::chrono_literals;

void World::plan(double average, const std::function<void()>& fault) {
  auto count = static_cast<std::uint64_t>(average);
  const double rest = average - static_cast<double>(count);
  if (static_cast<double>(below(1000)) < rest * 1000) ++count;
  count = count == 0 ? 0 : below(2 * count + 1);
  for (; count > 0; --count)
    at(Time() + some_time(1s, nature_.length), [this, fault] {
      if (!faults_ended_) fault();
    });
}

void World::cut_link(std::size_t from, std::size_t to, Duration how_long) {
  Link& link = links_[{from, to}];
  link.cut_until = std::max(link.cut_until, now_ + how_long);
  ++link.resets;
}

// A node gets a message of another node with one member that no node sends.
void World::forge() {
  const NodeId to = 1 + below(nodes_.size());
  const NodeId from = 1 + to % nodes_.size();
  Machine& machine = *node_of(to).machine;
  if (from == to || !machine.running()) return;
  const cluster::Node& node = machine.node();
  cluster::Message forged;
  forged.cluster = node.cluster();
  forged.from = from;
  forged.to = to;
  forged.type = static_cast<cluster::MessageType>(1 + below(6));
  forged.term = node.term() + below(3);
  forged.index = forged.log_term = 1;
  forged.commit = node.committed();
  forged.sent = forged.echo = now_;
  const std::uint64_t beyond = below(2) == 0 ? UINT64_MAX : cluster::kMostPosition + 1 + below(9);
  switch (below(7)) {
    case 0:
      forged.term = beyond;
      break;
    case 1:
      forged.index = beyond;
      break;
    case 2:
      forged.commit = beyond;
      break;
    case 3:
      forged.rejected = beyond;
      break;
    case 4:
      forged.log_term = forged.term + 1;
      break;
    case 5:
      forged.term = 0;
      break;
    default:
      forged.type = cluster::MessageType::append;
      forged.entries.push_back({.term = forged.term + 1, .data = Bytes::copy_of("x")});
  }
  ++counts_.forgeries;
  remember("node " + text(to) + " gets a forged frame");
  on_node(to - 1, [this, to, from, frame = encode(forged)] {
    if (node_of(to).machine->receive(from, frame).empty())
      problem("node " + text(to) + " takes a forged frame");
  });
}

// One follower loses the leader and asks for votes. Shortly before it asks again, the other
// follower loses the leader too and is started again: it no longer knows which leader it has
// followed. Meanwhile clients change nothing, so the first follower has all entries and could be
// elected.
void World::confuse() {
  if (now_ < asking_until_) return;
  asking_until_ = now_ + 2s;
  after(500ms, [this] {
    if (faults_ended_) return;
    for (std::size_t leader = 0; leader < nodes_.size(); ++leader) {
      if (nodes_[leader].machine->running() && nodes_[leader].machine->serves())
        return confuse(leader);
    }
  });
}

void World::confuse(std::size_t leader) {
  const std::size_t first = (leader + 1) % nodes_.size();
  remember("node " + text(leader + 1) + " is lost by one follower after the other");
  cut_link(leader, first, 2s);
  // By then it is a candidate.
  after(610ms, [this, leader, first] {
    const Machine& candidate = *nodes_[first].machine;
    if (!candidate.running() || faults_ended_) return;
    const Time asks = candidate.true_time_of(candidate.node().next_deadline());
    at(asks - some_time(45ms, 150ms), [this, leader, first] {
      if (faults_ended_) return;
      for (std::size_t node = 0; node < nodes_.size(); ++node) {
        if (node == leader || node == first) continue;
        cut_link(leader, node, 1s);
        if (nodes_[node].machine->running()) crash(node, some_time(1ms, 40ms));
      }
    });
  });
}

void World::plan_faults() {
  for (const Nature::Upgrade& upgrade : nature_.upgrades) {
    at(upgrade.at, [this, upgrade] {
      Machine& machine = *nodes_[upgrade.node].machine;
      remember("node " + text(machine.id()) + " gets level " + text(upgrade.level));
      machine.set_level(upgrade.level);
      if (machine.running()) crash(upgrade.node, some_time(1ms, 500ms));
    });
  }
  const auto some_node = [this] { return below(nodes_.size()); };
  plan(nature_.crashes, [this, some_node] {
    const std::size_t node = some_node();
    if (nodes_[node].machine->running()) crash(node);
  });
  plan(nature_.power_losses, [this] {
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (nodes_[node].machine->running()) crash(node);
    }
  });
  plan(nature_.partitions, [this] {
    const Duration how_long = some_time(10ms, 3s);
    const std::uint64_t side = below(1U << nodes_.size());
    remember("partition " + text(side) + " for " +
             text(static_cast<std::uint64_t>(how_long / 1ms)) + " ms");
    for (std::size_t a = 0; a < nodes_.size(); ++a) {
      for (std::size_t b = 0; b < nodes_.size(); ++b) {
        if (((side >> a) & 1U) != ((side >> b) & 1U)) cut_link(a, b, how_long);
      }
    }
  });
  plan(nature_.one_way_cuts, [this, some_node] {
    const std::size_t from = some_node();
    const std::size_t to = some_node();
    remember("cut from " + text(from + 1) + " to " + text(to + 1));
    if (from != to) cut_link(from, to, some_time(10ms, 3s));
  });
  plan(nature_.resets, [this, some_node] { cut_link(some_node(), some_node(), Duration()); });
  plan(nature_.pauses, [this, some_node] {
    Node& node = nodes_[some_node()];
    if (node.paused_until > now_) return;
    node.paused_until = now_ + some_time(10ms, 2s);
    remember("node " + text(node.machine->id()) + " pauses");
  });
  plan(nature_.stalls, [this, some_node] {
    Node& node = nodes_[some_node()];
    node.stalled_until = now_ + some_time(10ms, 1s);
    remember("the disks of node " + text(node.machine->id()) + " stall");
  });
  plan(nature_.hangs, [this, some_node] {
    Node& node = nodes_[some_node()];
    node.stalled_until = now_ + some_time(1s, 4s);
    remember("the disks of node " + text(node.machine->id()) + " hang");
  });
  plan(nature_.full_disks, [this, some_node] {
    const std::size_t one = some_node();
    const bool all = below(4) == 0;
    for (std::size_t index = 0; index < nodes_.size(); ++index) {
      if (!all && index != one) continue;
      Machine& machine = *nodes_[index].machine;
      remember("the disks of node " + text(machine.id()) + " are full");
      machine.fill_disks(below(20'000));
      after(some_time(100ms, 4s), [&machine] { machine.empty_disks(); });
    }
  });
  plan(nature_.clock_steps, [this, some_node] {
    Node& node = nodes_[some_node()];
    node.machine->step_wall(some_time(Duration(), nature_.wall_skew) - nature_.wall_skew / 2);
  });
  plan(nature_.confusions, [this] { confuse(); });
  plan(nature_.member_changes, [this] { change_members(); });
  if (nature_.address_changes > 0) plan(nature_.address_changes, [this] { change_address(); });
  if (nature_.forgeries > 0) plan(nature_.forgeries, [this] { forge(); });
  if (nature_.wipes > 0) plan(nature_.wipes, [this, some_node] { wipe(some_node()); });
  plan(nature_.transfers, [this] {
    for (std::size_t index = 0; index < nodes_.size(); ++index) {
      if (!nodes_[index].machine->running() || !nodes_[index].machine->serves()) continue;
      remember("node " + text(index + 1) + " transfers");
      on_node(index, [this, index] { nodes_[index].machine->transfer(); });
    }
  });
}

std::optional<std::size_t> World::blank_node() const {
  const auto blank =
      std::ranges::find_if(nodes_, [](const Node& node) { return node.machine->blank(); });
  if (blank == nodes_.end()) return std::nullopt;
  return static_cast<std::size_t>(blank - nodes_.begin());
}

// True if the configuration on the disks of a machine has it as a voter: otherwise it does not
// vote. A machine that does not run is as it was when it last ran.
bool World::knows_its_vote(Node& node) {
  const Machine& machine = *node.machine;
  if (!machine.running()) return node.knew_its_vote;
  const cluster::Node& raft = machine.node();
  const auto members = cluster::decode_members(raft.configurations().at(raft.log().stored()).first);
  node.knew_its_vote =
      members && std::ranges::any_of(*members, [&](const cluster::Member& member) {
        return member.id == machine.id() && member.role == cluster::MemberRole::voter;
      });
  return node.knew_its_vote;
}

// A machine loses its disks. The cluster can do without it: no other machine is in that state, and
// the voters without it are a majority and know that they vote.
void World::wipe(std::size_t index) {
  const NodeId id = nodes_[index].machine->id();
  if (faults_ended_ || blank_node() || !nodes_[index].machine->running()) return;
  std::int64_t most_voters = 0;
  for (const Node& node : nodes_) {
    if (!node.machine->running()) continue;
    const std::vector<cluster::Member> members = node.machine->node().members();
    const auto voters =
        std::ranges::count(members, cluster::MemberRole::voter, &cluster::Member::role);
    const auto member = std::ranges::find(members, id, &cluster::Member::id);
    if (voters < 3 && member->role == cluster::MemberRole::voter) return;
    most_voters = std::max<std::int64_t>(most_voters, voters);
  }
  const auto others = std::ranges::count_if(nodes_, [this, index](Node& node) {
    return &node != &nodes_[index] && knows_its_vote(node);
  });
  if (others <= most_voters / 2) return;
  remember("node " + text(id) + " loses its disks");
  ++counts_.wipes;
  wiped_ = now_;
  nodes_[index].machine->wipe();
  nodes_[index].level = 0;
  after(some_time(50us, 500us), [this, index] { call(index); });
}

// A machine without a state runs and waits, and another node connects to it.
void World::call(std::size_t index) {
  Machine& machine = *nodes_[index].machine;
  if (!machine.blank()) return;
  after(some_time(1ms, 50ms), [this, index] { call(index); });
  const std::size_t from = below(nodes_.size());
  const Node& caller = nodes_[from];
  if (nodes_[index].fetching || !caller.machine->running() || caller.paused_until > now_) return;
  if (below(10) == 0) demote(index);
  if (links_[{from, index}].cut_until > now_) return;
  if (!caller.machine->node().may_invite(machine.id())) return;
  remember("node " + text(from + 1) + " invites node " + text(machine.id()));
  check_invitation(index, from);
  nodes_[index].fetching = true;
  after(some_time(1ms, 300ms), [this, index, from] { finish_join(index, from); });
}

// Makes a voter that has lost its disks a standby, as an operator does. The machine keeps its
// identity, but joins only with a state in which it is a standby.
void World::demote(std::size_t index) {
  for (std::size_t leader = 0; leader < nodes_.size(); ++leader) {
    const Machine& machine = *nodes_[leader].machine;
    if (!machine.running() || !machine.serves()) continue;
    std::vector<cluster::Member> members = machine.node().members();
    members[index].role = cluster::MemberRole::standby;
    if (members == machine.node().members()) continue;
    remember("node " + text(leader + 1) + " demotes node " + text(index + 1));
    on_node(leader, [this, leader, members] { nodes_[leader].machine->change_members(members); });
  }
}

// The newest committed change of the members decides whether a member votes.
void World::check_invitation(std::size_t index, std::size_t from) {
  const NodeId id = nodes_[index].machine->id();
  const cluster::Node& caller = nodes_[from].machine->node();
  const auto is_voter = [id](const std::vector<cluster::Member>& members) {
    return std::ranges::find(members, id, &cluster::Member::id)->role == cluster::MemberRole::voter;
  };
  Index newest = 0;
  bool votes = true;  // as at the foundation
  for (auto entry = committed_.rbegin(); entry != committed_.rend() && newest == 0; ++entry) {
    if (entry->second.type != cluster::EntryType::change) continue;
    newest = entry->first;
    votes = is_voter(cluster::decode_members(entry->second.data.view()).value());
  }
  const bool knows_later = caller.configurations().newest() > newest;
  if (is_voter(caller.members()) || (votes && !knows_later))
    problem("node " + text(from + 1) + " invites node " + text(id) +
            ", which has forgotten its votes");
}

void World::finish_join(std::size_t index, std::size_t from) {
  Node& node = nodes_[index];
  const Node& source = nodes_[from];
  node.fetching = false;
  if (!node.machine->blank() || !source.machine->running()) return;
  if (node.machine->join(*source.machine)) {
    ++counts_.joins;
    remember("node " + text(index + 1) + " joins with the state of node " + text(from + 1));
  }
  if (source.machine->dead()) crash(from);
  boot(index);
}

// Makes a voter a standby, or a standby a voter again. A leader counts on the vote of a machine
// that has lost its disks until that is silent for long. If it makes another node a voter
// meanwhile, and fails before that node knows of it, the others are too few to elect a leader.
void World::change_members() {
  if (blank_node() && now_ < wiped_ + 2 * nature_.machine.election_timeout) return;
  // A majority remains if a machine loses its disks.
  const int fewest = nature_.wipes > 0 ? 3 : 2;
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    const Machine& machine = *nodes_[index].machine;
    if (!machine.running() || !machine.serves()) continue;
    std::vector<cluster::Member> members = machine.node().members();
    cluster::Member& member = members[below(members.size())];
    const auto voters =
        std::ranges::count(members, cluster::MemberRole::voter, &cluster::Member::role);
    const bool waits = nodes_[member.id - 1].machine->blank();
    if (member.role == cluster::MemberRole::standby && !(waits && faults_ended_)) {
      member.role = cluster::MemberRole::voter;
      member.stays = false;
      if (nature_.wipes > 0 && !faults_ended_ && below(2) == 0)
        after(some_time(Duration(), 2ms), [this, id = member.id] { wipe(id - 1); });
    } else if (voters > fewest && member.id != machine.id() && !faults_ended_ && !blank_node()) {
      member.role = cluster::MemberRole::standby;
      member.stays =
          machine.node().level() >= cluster::kLevelOfStandbys && counts_.member_changes % 2 == 0;
    } else {
      continue;
    }
    remember("node " + text(index + 1) + " changes the role of node " + text(member.id));
    on_node(index, [this, index, members] { nodes_[index].machine->change_members(members); });
    ++counts_.member_changes;
  }
}

// Gives a member of any role another address, also while it does not run.
void World::change_address() {
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    const Machine& machine = *nodes_[index].machine;
    if (!machine.running() || !machine.serves()) continue;
    std::vector<cluster::Member> members = machine.node().members();
    cluster::Member& member = members[below(members.size())];
    member.address = "node " + text(member.id) + " at " + text(++counts_.address_changes);
    remember("node " + text(index + 1) + " changes the address of node " + text(member.id));
    on_node(index, [this, index, members] { nodes_[index].machine->change_members(members); });
  }
}

void World::end_faults() {
  faults_ended_ = true;
  asking_until_ = Time();
  remember("the faults end");
  for (auto& [ends, link] : links_) link.cut_until = Time();
  for (std::size_t index = 0; index < nodes_.size(); ++index) {
    Node& node = nodes_[index];
    node.machine->journal_disk().crash_at(UINT64_MAX);
    node.machine->raft_disk().crash_at(UINT64_MAX);
    node.machine->empty_disks();
    boot(index);
  }
}

}  // namespace tubed::cluster_test
