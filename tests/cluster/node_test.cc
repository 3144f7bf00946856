// A node on its disk: a refused start, a single node, and three nodes with a lagging node.
#include "cluster/node.h"

#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "tests/cluster/node_group.h"

namespace tubed::cluster {

namespace {

std::string refusal(journal::TestDisk& disk, const Applied& base) {
  Host host;
  const auto node = Node::open(disk, host, node_options(), base);
  return node.ok() ? "" : node.error().message;
}

}  // namespace

TEST_CASE("a directory without a state is not a member of a cluster") {
  journal::TestDisk disk;
  CHECK(refusal(disk, founding_position(kCluster)) ==
        "the node has no state: it is not a member of a cluster");
}

TEST_CASE("a single node leads at once, and commits entries that are on its disk") {
  journal::TestDisk disk;
  REQUIRE(found(disk, log_options(), 1, founders(1)).ok());
  Host host;
  auto opened = Node::open(disk, host, node_options(), founding_position(kCluster));
  REQUIRE(opened.ok());
  Node& node = **opened;
  CHECK(node.leads());
  CHECK(node.lease_end() == kNever);
  EntryWriter writer;
  const Index first = node.submit({writer.finish({.chain = node.chains().tail()})});
  CHECK(first == 2);
  CHECK(node.committed() == 1);
  run(disk, node, host);
  CHECK(node.committed() == 2);
  CHECK(node.applicable() == 2);
  CHECK(host.sent.empty());
}

TEST_CASE("a member that has not answered counts as silent since it was added") {
  journal::TestDisk disk;
  REQUIRE(found(disk, log_options(), 1, founders(1)).ok());
  Host host;
  auto opened = Node::open(disk, host, node_options(), founding_position(kCluster));
  REQUIRE(opened.ok());
  Node& node = **opened;
  const Time elected = host.now;
  host.now += 10s;
  run(disk, node, host);
  CHECK(node.silent_since(1) == elected);
  std::vector<Member> members = founders(2);
  members[1].role = MemberRole::standby;
  const Time added = host.now;
  REQUIRE(node.change_members(members));
  run(disk, node, host);
  CHECK(node.silent_since(2) == added);
}

TEST_CASE("a node refuses a journal that does not fit its raft log") {
  journal::TestDisk disk;
  REQUIRE(found(disk, log_options(), 1, founders(1)).ok());
  Applied last = founding_position(kCluster);
  {
    Host host;
    auto opened = Node::open(disk, host, node_options(), last);
    REQUIRE(opened.ok());
    Node& node = **opened;
    for (int i = 0; i < 20; ++i) {
      EntryWriter writer;
      REQUIRE(node.submit({writer.finish({.chain = node.chains().tail()})}) != 0);
      run(disk, node, host);
    }
    last = {.index = node.log().last(), .term = node.term(), .chain = node.chains().tail()};
    node.journal_synced(last.index);
    CHECK(node.log().first() == last.index - 3);
    run(disk, node, host);
  }
  CHECK(refusal(disk, last) == "");
  Applied beyond = last;
  beyond.index += 1;
  CHECK(refusal(disk, beyond) ==
        "the raft log has the entries 2 to 21, and the journal ends after 22");
  Applied other = last;
  other.term += 1;
  CHECK(refusal(disk, other) == "the raft log and the journal differ at entry 21");
}

TEST_CASE("a node that has just started does not answer vote requests") {
  journal::TestDisk disk;
  REQUIRE(found(disk, log_options(), 1, founders(3)).ok());
  Host host;
  auto opened = Node::open(disk, host, node_options(), founding_position(kCluster));
  REQUIRE(opened.ok());
  Node& node = **opened;
  Message vote;
  vote.cluster = kCluster;
  vote.from = 2;
  vote.to = 1;
  vote.type = MessageType::vote;
  vote.term = 2;
  vote.index = 1;
  vote.log_term = 1;
  host.now += 299ms;
  node.receive(2, encode(vote));
  CHECK(host.sent.empty());
  host.now += 1ms;
  node.receive(2, encode(vote));
  REQUIRE(host.sent.size() == 1);
  const auto answer = decode(host.sent.front().second);
  REQUIRE(answer);
  CHECK(answer->type == MessageType::vote_result);
  CHECK(answer->granted);
  // The vote is on disk.
  CHECK((*load_node_state(disk).value()).voted_for == 2);
  // A request of another cluster, and a request for another node.
  vote.cluster = 8;
  node.receive(2, encode(vote));
  vote.cluster = kCluster;
  vote.to = 3;
  node.receive(2, encode(vote));
  CHECK(host.sent.size() == 1);
}

TEST_CASE("a fetch is passed on to the host") {
  journal::TestDisk disk;
  REQUIRE(found(disk, log_options(), 1, founders(3)).ok());
  Host host;
  auto opened = Node::open(disk, host, node_options(), founding_position(kCluster));
  REQUIRE(opened.ok());
  Message fetch;
  fetch.cluster = kCluster;
  fetch.from = 3;
  fetch.to = 1;
  fetch.type = MessageType::fetch;
  fetch.term = 1;
  CHECK((*opened)->receive(3, encode(fetch)) == "");
  CHECK(host.fetched_from == 3);
}

TEST_CASE(
    "a node that has fetched a state is sent the following entries, even if more were cut "
    "meanwhile") {
  NodeGroup trio(node_options());
  const NodeId leader = trio.elect();
  const NodeId other = leader % 3 + 1;
  const NodeId lagging = other % 3 + 1;
  SUBCASE("from the leader") {}
  // Its journal lacks entries: the state ends before the state that the leader has sent, but after
  // the leader's first entry.
  SUBCASE("from a follower that has less") {
    trio.of(other).behind = 300;
  }
  const NodeId source = trio.of(other).behind > 0 ? other : leader;
  trio.load(leader, 20);
  NodeGroup::Machine& machine = trio.of(lagging);
  machine.silent = true;
  trio.load(leader, 4000);
  machine.silent = false;
  machine.host.fetched_from = 0;
  trio.load(leader, 400);
  CHECK(machine.host.fetched_from == leader);
  CHECK(trio.node(leader).log().first() > machine.node->log().last());

  // It hears from its leader all the time, even if an answer takes longer than a heartbeat.
  machine.delay = 40ms;
  for (int i = 0; i < 300; ++i) trio.step();
  machine.longest = {};
  for (int i = 0; i < 1000; ++i) trio.step();
  CHECK(machine.longest <= trio.options.election_timeout / 5);
  machine.delay = {};

  const NodeGroup::State state = trio.state_of(source);
  trio.load(leader, 2);
  trio.restart_with(lagging, state);
  trio.load(leader, 700);
  CHECK(machine.host.fetched_from == 0);
  CHECK(machine.node->log().last() + 40 > trio.node(leader).log().last());
}

TEST_CASE("a node whose acknowledgements were lost is sent only the entries that it lacks") {
  NodeGroup trio(node_options());
  const NodeId leader = trio.elect();
  trio.load(leader, 20);
  NodeGroup::Machine& machine = trio.of(leader % 3 + 1);
  machine.mute = true;
  trio.load(leader, 60);
  for (int i = 0; i < 500; ++i) trio.step();
  // It has cut the entries that the leader sends again.
  CHECK(machine.node->log().first() > 20 + 4);
  machine.mute = false;
  trio.load(leader, 100);
  CHECK(machine.node->log().last() + 5 > trio.node(leader).log().last());
  CHECK(machine.host.fetched_from == 0);
}

TEST_CASE("a follower gets at most the bytes that may be under way, until they are stored") {
  NodeOptions options = node_options();
  options.in_flight_bytes = 4096;
  NodeGroup trio(options);
  const NodeId leader = trio.elect();
  NodeGroup::Machine& machine = trio.of(leader % 3 + 1);
  trio.load(leader, 20);
  machine.stalled = true;
  for (int i = 0; i < 500; ++i) {
    if (i % 10 == 0) trio.submit(leader, 1500);
    trio.step();
    CHECK(machine.node->log().unstored_bytes() <= 4096);
  }
  CHECK(machine.node->log().unstored_bytes() > 2048);
  machine.stalled = false;
  trio.load(leader, 100, 1500);
  trio.load(leader, 1, 10'000);
  for (int i = 0; i < 600; ++i) trio.step();
  CHECK(machine.node->log().last() == trio.node(leader).log().last());
  CHECK(machine.most_sent > 10'000);
  CHECK(machine.most_sent < 10'100);
  // A full window does not count as silence.
  CHECK(trio.node(leader).leads());
  CHECK(trio.node(leader).term() == 2);
}

// The leader may fail before the new voter knows of its vote: then the others have to elect one.
TEST_CASE("a node becomes a voter only while it and enough of the others answer") {
  NodeGroup group(node_options(), kFeatureLevel, 4);
  const NodeId leader = group.elect();
  Node& node = group.node(leader);
  const NodeId standby = leader % 4 + 1;
  const NodeId other = standby % 4 + 1;
  const auto steps = [&](int most) {
    for (int i = 0; i < most; ++i) group.step();
  };
  const auto change = [&](const std::vector<Member>& members) {
    for (int i = 0; i < 2000 && !node.change_members(members); ++i) group.step();
    for (int i = 0; i < 2000 && node.committed() < node.log().last(); ++i) group.step();
    steps(100);  // those that answer have it
    return node.members() == members;
  };
  const auto silence = [&](NodeId id) {
    group.of(id).silent = true;
    const Time silent = group.now;
    while (group.now <= silent + group.options.election_timeout) group.step();
    REQUIRE(node.has_lease());
  };
  std::vector<Member> members = node.members();
  members[standby - 1].role = MemberRole::standby;
  REQUIRE(change(members));
  std::vector<Member> next = members;
  next[standby - 1].role = MemberRole::voter;
  SUBCASE("another voter is silent") {
    silence(other);
    CHECK_FALSE(node.change_members(next));
    SUBCASE("it answers again") {
      group.of(other).silent = false;
      steps(100);
      CHECK(node.change_members(next));
    }
    SUBCASE("it is removed") {
      for (std::vector<Member>* const each : {&members, &next})
        std::erase_if(*each, [&](const Member& member) { return member.id == other; });
      REQUIRE(change(members));
      CHECK(node.change_members(next));
    }
  }
  SUBCASE("another voter answers, and lacks the newest change") {
    group.of(other).stalled = true;
    members[standby - 1].address = "elsewhere";
    next[standby - 1].address = "elsewhere";
    REQUIRE(change(members));
    CHECK_FALSE(node.change_members(next));
    group.of(other).stalled = false;
    steps(100);
    CHECK(node.change_members(next));
  }
  SUBCASE("the new voter is silent") {
    silence(standby);
    REQUIRE(node.match(standby) >= node.committed());
    CHECK_FALSE(node.change_members(next));
    group.of(standby).silent = false;
    steps(100);
    CHECK(node.change_members(next));
  }
}

TEST_CASE("a leader invites a standby, but no longer after its promotion") {
  NodeGroup trio(node_options());
  const NodeId leader = trio.elect();
  const NodeId other = leader % 3 + 1;
  const NodeId standby = other % 3 + 1;
  Node& node = trio.node(leader);
  std::vector<Member> members = node.members();
  members[standby - 1].role = MemberRole::standby;
  for (int i = 0; i < 2000 && !node.change_members(members); ++i) trio.step();
  const auto known = [&](NodeId id) { return trio.node(id).members() == members; };
  for (int i = 0; i < 2000 && !(known(1) && known(2) && known(3)); ++i) trio.step();
  for (int i = 0; i < 2000 && node.committed() != node.log().last(); ++i) trio.step();
  REQUIRE(node.committed() == node.log().last());
  REQUIRE(node.has_lease());
  CHECK(node.may_invite(standby));
  CHECK_FALSE(node.may_invite(other));
  CHECK_FALSE(node.may_invite(leader));
  CHECK_FALSE(node.may_invite(9));
  CHECK_FALSE(trio.node(other).may_invite(standby));

  SUBCASE("no tick has passed since the promotion, which is not committed") {
    members[standby - 1].role = MemberRole::voter;
    REQUIRE(node.change_members(members));
    REQUIRE(node.committed() < node.log().last());
    CHECK(node.configurations().newest() == node.log().last());
    CHECK_FALSE(node.may_invite(standby));
    for (int i = 0; i < 2000 && node.committed() < node.log().last(); ++i) {
      trio.step();
      CHECK_FALSE(node.may_invite(standby));
    }
    CHECK(node.committed() == node.log().last());
  }
  SUBCASE("the others elect a leader without this one only after the standby knows of its vote") {
    trio.of(standby).delay = 20ms;
    members[standby - 1].role = MemberRole::voter;
    REQUIRE(node.change_members(members));
    bool knows = false;
    SUBCASE("the change is only committed") {
      for (int i = 0; i < 2000 && node.committed() < node.configurations().newest(); ++i)
        trio.step();
    }
    SUBCASE("the new voter has it too") {
      knows = true;
      for (int i = 0; i < 2000 && node.match(standby) < node.configurations().newest(); ++i)
        trio.step();
    }
    REQUIRE(node.committed() >= node.configurations().newest());
    CHECK((node.match(standby) >= node.configurations().newest()) == knows);
    trio.of(leader).silent = true;
    if (!knows) trio.frames.clear();
    bool elected = false;
    for (int i = 0; i < 2000 && !elected; ++i) {
      trio.step();
      elected = trio.node(other).leads() || trio.node(standby).leads();
    }
    CHECK(elected == knows);
  }
  SUBCASE("another node may lead and have promoted it") {
    trio.of(leader).silent = true;
    int without_lease = 0;
    for (int i = 0; i < 2000 && node.leads(); ++i) {
      CHECK(node.may_invite(standby) == node.has_lease());
      without_lease += node.has_lease() ? 0 : 1;
      trio.step();
    }
    CHECK(without_lease > 0);
    CHECK_FALSE(node.may_invite(standby));
  }
  SUBCASE("it passes on leadership") {
    REQUIRE(node.transfer(other));
    CHECK_FALSE(node.may_invite(standby));
  }
}

TEST_CASE("entries under way to a follower are not sent again") {
  NodeOptions options = node_options();
  options.part_bytes = 1 << 20;
  NodeGroup trio(options);
  const NodeId leader = trio.elect();
  trio.load(leader, 20);
  NodeGroup::Machine& machine = trio.of(leader % 3 + 1);
  const auto run_quietly = [&trio](int steps) {
    for (int i = 0; i < steps; ++i) trio.step();
  };
  SUBCASE("even if the answer takes longer than a heartbeat") {
    machine.delay = 100ms;
    run_quietly(1000);
    machine.sent = 0;
    trio.load(leader, 30, 1000);
    run_quietly(250);
    CHECK(machine.node->log().last() == trio.node(leader).log().last());
    CHECK(machine.sent == 30 * 1024);
  }
  SUBCASE("unless they may be lost") {
    run_quietly(20);
    machine.silent = true;
    trio.load(leader, 10, 1000);
    run_quietly(50);
    machine.silent = false;
    machine.sent = 0;
    run_quietly(350);
    CHECK(machine.node->log().last() == trio.node(leader).log().last());
    CHECK(machine.sent == 10 * 1024);
  }
}

TEST_CASE("old entries are kept up to a number and a size, and at least one") {
  journal::TestDisk disk;
  REQUIRE(found(disk, log_options(), 1, founders(1)).ok());
  Applied last = founding_position(kCluster);
  NodeOptions options = node_options();
  options.kept_entries = 100;
  options.kept_bytes = 1000;
  const auto kept = [&disk, &options, &last](int count, std::size_t bytes) {
    Host host;
    auto opened = Node::open(disk, host, options, last);
    REQUIRE(opened.ok());
    Node& node = **opened;
    for (int i = 0; i < count; ++i) {
      REQUIRE(node.submit({Bytes::copy_of(std::string(bytes, 'x'))}) != 0);
      run(disk, node, host);
      node.journal_synced(node.applicable());
    }
    last = {.index = node.log().last(), .term = node.term(), .chain = node.chains().tail()};
    return last.index + 1 - node.log().first();
  };
  // A record takes 24 bytes more. Entries are cut at a start, and when an eighth of the bytes is
  // new.
  CHECK(kept(50, 72) >= 10);
  CHECK(kept(50, 72) <= 12);
  CHECK(kept(0, 0) == 10);
  CHECK(kept(1, 5000) == 1);
  CHECK(kept(50, 0) >= 41);
  CHECK(kept(50, 0) <= 47);
  CHECK(kept(0, 0) == 41);
  options.kept_bytes = 1 << 20;
  options.kept_entries = 8;
  CHECK(kept(0, 0) == 8);
  CHECK(kept(20, 0) == 8);
}

TEST_CASE("a node reports how long its disk has not stored entries, and that the disk is full") {
  journal::TestDisk disk;
  REQUIRE(found(disk, log_options(), 1, founders(1)).ok());
  Host host;
  NodeOptions options = node_options();
  options.unstored_bytes = 1000;
  auto opened = Node::open(disk, host, options, founding_position(kCluster));
  REQUIRE(opened.ok());
  Node& node = **opened;
  run(disk, node, host);
  CHECK(node.log().oldest_write() == Duration());
  CHECK(!node.full());
  CHECK(!node.congested());
  const auto submit = [&node] {
    REQUIRE(node.submit({Bytes::copy_of(std::string(600, 'x'))}) != 0);
  };
  submit();
  node.tick();
  CHECK(!node.congested());
  host.now += 700ms;
  submit();
  node.tick();
  CHECK(node.log().oldest_write() == 700ms);
  CHECK(node.congested());
  // The next write begins.
  disk.run_one();
  node.tick();
  CHECK(node.log().oldest_write() == Duration());
  host.now += 20ms;
  CHECK(node.log().oldest_write() == 20ms);
  run(disk, node, host);
  CHECK(node.log().oldest_write() == Duration());
  CHECK(!node.congested());
  // A refused write is still the same write.
  disk.set_capacity(0);
  disk.fail_after(journal::Operation::write, 0, journal::Outcome::Kind::no_space, "no space", 3);
  submit();
  node.tick();
  run(disk, node, host);
  host.now += 2s;
  node.tick();
  CHECK(node.full());
  CHECK(node.log().oldest_write() > 2s);
}

}  // namespace tubed::cluster
