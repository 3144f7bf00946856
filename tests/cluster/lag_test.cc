// Tests of what a leader shows of its followers: their lag and their wall clocks.
#include <doctest/doctest.h>

#include "tests/cluster/node_group.h"

namespace tubed::cluster {

TEST_CASE("a leader knows how long each follower has lacked an entry") {
  NodeGroup trio(node_options());
  const NodeId leader = trio.elect();
  const NodeId other = leader % 3 + 1;
  const NodeId third = other % 3 + 1;
  Node& node = trio.node(leader);
  const auto run_for = [&trio](Duration time) {
    for (const Time end = trio.now + time; trio.now < end;) trio.step();
  };
  const auto put = [&trio, &node, leader] {
    EntryWriter writer;
    const Time time = node.time().at(trio.now);
    return node.submit(
        {writer.finish({.time = time, .chain = node.chains().tail(), .leader = leader})});
  };
  node.time().lead(trio.now, Time(1000h), Time());
  for (int i = 0; i < 10; ++i, trio.step()) REQUIRE(put() != 0);
  run_for(200ms);
  CHECK(node.lag(leader) == 0ms);
  CHECK(node.lag(other) == 0ms);
  CHECK_FALSE(trio.node(other).lag(leader));
  trio.of(other).silent = true;
  const Time first = trio.now;
  REQUIRE(put() != 0);
  run_for(100ms);
  CHECK(node.lag(third) == 0ms);
  CHECK(node.lag(other) == trio.now - first);
  SUBCASE("it ends when the follower has all on its disk") {
    trio.of(other).silent = false;
    trio.of(other).stalled = true;
    run_for(500ms);
    CHECK(trio.node(other).log().last() == node.log().last());
    CHECK(node.lag(other) == trio.now - first);
    trio.of(other).stalled = false;
    run_for(100ms);
    CHECK(node.lag(other) == 0ms);
  }
  SUBCASE("also after the entry was cut") {
    const Index lacked = node.log().last();
    // An entry of the followers is kept for ten election timeouts after their last answer.
    run_for(11 * trio.options.election_timeout);
    for (int i = 0; i < 50; ++i, trio.step()) REQUIRE(put() != 0);
    run_for(100ms);
    CHECK(node.log().first() > lacked);
    CHECK(node.lag(third) == 0ms);
    CHECK(node.lag(other) == trio.now - first);
  }
  SUBCASE("another leader knows it when the follower has answered") {
    trio.of(other).silent = false;
    trio.of(other).stalled = true;
    run_for(100ms);
    REQUIRE(node.transfer(third));
    for (int i = 0; i < 2000 && !trio.node(third).leads(); ++i) trio.step();
    Node& next = trio.node(third);
    REQUIRE(next.leads());
    CHECK_FALSE(next.lag(other));
    run_for(200ms);
    // It has the time of the cluster from the frames of the first leader, each a millisecond old.
    CHECK(next.lag(other) == trio.now - first - 1ms);
  }
}

TEST_CASE("a leader knows how far the wall clocks of its followers differ, from level 6 on") {
  Level level = kLevelOfClocks;
  SUBCASE("level 5") {
    level = kLevelOfClocks - 1;
  }
  SUBCASE("level 6") {}
  NodeGroup trio(node_options(), level);
  for (NodeGroup::Machine& machine : trio.machines) machine.host.ahead = 1000h;
  const NodeId leader = trio.elect();
  const NodeId early = leader % 3 + 1;
  const NodeId late = early % 3 + 1;
  const Node& node = trio.node(leader);
  trio.of(early).host.ahead += 2s;
  trio.of(late).host.ahead -= 3s;
  for (int i = 0; i < 100; ++i) trio.step();
  CHECK_FALSE(node.clock_difference(leader));
  CHECK_FALSE(trio.node(early).clock_difference(late));
  if (level < kLevelOfClocks) {
    CHECK_FALSE(node.clock_difference(early));
    return;
  }
  CHECK(node.clock_difference(early).value() >= 2s - 10ms);
  CHECK(node.clock_difference(early).value() <= 2s + 10ms);
  CHECK(node.clock_difference(late).value() >= 3s - 10ms);
  CHECK(node.clock_difference(late).value() <= 3s + 10ms);
}

TEST_CASE("a node that was restarted and is elected has the time of the cluster from its voters") {
  Level level = kLevelOfClocks;
  SUBCASE("level 5") {
    level = kLevelOfClocks - 1;
  }
  SUBCASE("level 6") {}
  NodeGroup trio(node_options(), level);
  const NodeId leader = trio.elect();
  const NodeId voter = leader % 3 + 1;
  const NodeId other = voter % 3 + 1;
  const Time began = trio.now;
  trio.node(leader).time().lead(began, Time(1000h), Time());
  for (int i = 0; i < 100; ++i) trio.step();
  // The voter lacks entries, so it votes, and is not elected itself.
  trio.of(voter).silent = true;
  trio.load(leader, 5);
  for (int i = 0; i < 50; ++i) trio.step();
  trio.restart_with(leader, trio.state_of(leader));
  trio.of(voter).silent = false;
  trio.of(other).silent = true;
  Node& node = trio.node(leader);
  CHECK_FALSE(node.time().is_set());
  for (int i = 0; i < 5000 && !node.leads(); ++i) trio.step();
  REQUIRE(node.leads());
  REQUIRE(node.time().is_set() == (level >= kLevelOfClocks));
  if (!node.time().is_set()) return;
  // Whatever its wall clock says.
  node.time().lead(trio.now, Time(2000h), Time());
  const Duration late = Time(1000h) + (trio.now - began) - node.time().at(trio.now);
  CHECK(late >= 0ms);
  CHECK(late <= 5ms);
}

// The sender may have been stopped since, and know a later time than the others.
TEST_CASE("no late vote and no former leader moves the time of the cluster while a node leads") {
  NodeGroup trio(node_options());
  const NodeId leader = trio.elect();
  Node& node = trio.node(leader);
  REQUIRE(node.term() > 1);
  node.time().lead(trio.now, Time(1000h), Time());
  Message late;
  late.cluster = kCluster;
  late.from = leader % 3 + 1;
  late.to = leader;
  late.sent = trio.now;
  late.time = Time(1000h) + 50ms;
  SUBCASE("a vote") {
    late.type = MessageType::vote_result;
    late.term = node.term();
    late.granted = true;
  }
  SUBCASE("an append") {
    late.type = MessageType::append;
    late.term = node.term() - 1;
    late.index = 1;
    late.log_term = 1;
  }
  CHECK(node.receive(late.from, encode(late)).empty());
  CHECK(node.leads());
  CHECK(node.time().at(trio.now) == Time(1000h));
  // The next leader has that time.
  late.type = MessageType::append;
  late.term = node.term() + 1;
  CHECK(node.receive(late.from, encode(late)).empty());
  CHECK_FALSE(node.leads());
  CHECK(node.time().at(trio.now) == late.time);
}

TEST_CASE("an answer that has taken long says nothing about the clock of a follower") {
  Followers followers(300ms);
  followers.reset(Time(1s));
  CHECK_FALSE(followers.clock_difference(2));
  followers.read_clock(2, Time(100s), Time(2s), Time(2s + 502ms), Time(90s));
  CHECK_FALSE(followers.clock_difference(2));
  followers.read_clock(2, Time(100s), Time(2s), Time(2s + 200ms), Time(90s));
  CHECK(followers.clock_difference(2) == 10s + 100ms);
  followers.read_clock(2, Time(80s), Time(3s), Time(3s + 200ms), Time(90s));
  CHECK(followers.clock_difference(2) == 9s + 900ms);
  followers.reset(Time(4s));
  CHECK_FALSE(followers.clock_difference(2));
}

TEST_CASE("an entry without facts has the time at which the leader has appended it") {
  journal::TestDisk disk;
  REQUIRE(found(disk, log_options(), 1, founders(1)).ok());
  Host host;
  auto opened = Node::open(disk, host, node_options(), founding_position(kCluster));
  REQUIRE(opened.ok());
  Node& node = **opened;
  run(disk, node, host);
  CHECK(node.lag(1) == 0ms);
  std::vector<Member> members = founders(2);
  members[1].role = MemberRole::standby;
  const Time added = host.now;
  REQUIRE(node.change_members(members));
  host.now += 5s;
  CHECK(node.lag(1) == host.now - added);
  CHECK_FALSE(node.lag(2));
  run(disk, node, host);
  CHECK(node.lag(1) == 0ms);
}

}  // namespace tubed::cluster
