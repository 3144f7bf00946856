// Nodes in one process, connected over loopback, and single sockets that take the place of one.
#include "node/peer_links.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/crc32c.h"
#include "cluster/envelope.h"
#include "tests/loop/fake_names.h"
#include "tests/server/peer_node.h"

namespace tubed::server_test {

using cluster::Hello;
using cluster::Purpose;
using cluster::Welcome;
using cluster::WelcomeStatus;
using loop_test::run_ticks;
using loop_test::run_until;

TEST_CASE("two nodes dial each other, and large and small frames arrive in order") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  PeerNode b(loop, 2);
  a.links->send(2, frame_of(99));  // dropped: no link
  join({&a, &b});
  a.links->send(2, frame_of(99));  // dropped: not connected
  REQUIRE(all_connected({&a, &b}));
  CHECK(a.hellos.front() == Hello{.purpose = Purpose::frames,
                                  .level = cluster::kFeatureLevel,
                                  .cluster = kCluster,
                                  .from = 2,
                                  .to = 1,
                                  .address = b.facts.address,
                                  .configuration_index = 5,
                                  .name = std::string(cluster::name_in(a.facts.address)),
                                  .invites = false});
  std::size_t sent = 0;
  for (std::size_t i = 1; i <= 300; ++i) {
    a.links->send(2, frame_of(i, i % 100 == 50 ? 20U << 20 : 10));
    b.links->send(1, frame_of(i, 10));
    ++sent;
    if (i % 50 == 0) REQUIRE(run_until(loop, [&] { return b.frames.size() == sent; }));
  }
  REQUIRE(run_until(loop, [&] { return a.frames.size() == sent; }));
  for (std::size_t i = 1; i <= 300; ++i) {
    CHECK(b.frames[i - 1].first == 1);
    CHECK(index_of(b.frames[i - 1].second, i % 100 == 50 ? 20U << 20 : 10) == i);
    CHECK(index_of(a.frames[i - 1].second, 10) == i);
  }
  CHECK(a.links->unsent(2) == 0);
  CHECK(a.has_logged("connected to another node"));
}

TEST_CASE("three nodes send each other frames") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  PeerNode b(loop, 2);
  PeerNode c(loop, 3);
  const std::vector<PeerNode*> nodes = {&a, &b, &c};
  join(nodes);
  REQUIRE(all_connected(nodes));
  for (cluster::Index i = 1; i <= 100; ++i) {
    for (PeerNode* from : nodes) {
      for (PeerNode* to : nodes) from->links->send(to->id, frame_of(i));
    }
  }
  for (const PeerNode* node : nodes) {
    CHECK(run_until(loop, [&] { return node->frames.size() == 200; }));
    for (const PeerNode* from : nodes) {
      cluster::Index last = 0;
      for (const auto& [sender, frame] : node->frames) {
        if (sender == from->id) CHECK(index_of(frame) == ++last);
      }
      CHECK(last == (from == node ? 0 : 100));
    }
  }
  // Without one of them the others stay connected.
  c.links.reset();
  REQUIRE(run_until(loop, [&] { return !a.links->is_connected(3) && !b.links->is_connected(3); }));
  CHECK(a.links->is_connected(2));
  CHECK(b.links->is_connected(1));
}

TEST_CASE("a node that comes back on its port is dialled again") {
  loop::Loop loop;
  PeerNode a(loop, 1, kQuick);
  auto b = std::make_unique<PeerNode>(loop, 2, kQuick);
  join({&a, b.get()});
  REQUIRE(all_connected({&a, b.get()}));
  const std::uint16_t port = b->port();
  b.reset();
  REQUIRE(run_until(loop, [&] { return !a.links->is_connected(2); }));
  a.links->send(2, frame_of(1));  // dropped
  REQUIRE(run_until(loop, [&] { return a.has_logged("Connection refused"); }));
  b = std::make_unique<PeerNode>(loop, 2, kQuick, port);
  join({&a, b.get()});
  REQUIRE(all_connected({&a, b.get()}));
  a.links->send(2, frame_of(2));
  REQUIRE(run_until(loop, [&] { return !b->frames.empty(); }));
  CHECK(index_of(b->frames.front().second) == 2);
}

TEST_CASE("a member whose name leads elsewhere is found again") {
  loop::Loop loop;
  const loop_test::FakeNames names;
  names.set("b.test", {"127.0.0.2"});
  PeerNode a(loop, 1, kQuick);
  auto b = std::make_unique<PeerNode>(loop, 2, kQuick);
  const auto member = [&] {
    return cluster::Member{.id = 2, .address = fmt::format("b@b.test:{}", b->port())};
  };
  a.links->set_members({a.member(), member()});
  b->links->set_members({a.member(), member()});
  REQUIRE(run_until(loop, [&] { return a.has_logged("Connection refused"); }));
  names.set("b.test", {"127.0.0.1"});
  const std::size_t enough = a.dials + 50;
  REQUIRE(run_until(loop, [&] { return a.links->is_connected(2) || a.dials > enough; }));
  REQUIRE(a.links->is_connected(2));
  // While a name leads nowhere, the connection stays; later it is dialled as before.
  names.set("b.test", {});
  a.links->send(2, frame_of(1));
  REQUIRE(run_until(loop, [&] { return b->frames.size() == 1; }));
  const std::uint16_t port = b->port();
  b.reset();
  REQUIRE(run_until(loop, [&] { return a.has_logged("cannot resolve b.test: Name or service"); }));
  b = std::make_unique<PeerNode>(loop, 2, kQuick, port);
  b->links->set_members({a.member(), member()});
  names.set("b.test", {"127.0.0.3", "127.0.0.1"});
  REQUIRE(run_until(loop, [&] { return a.links->is_connected(2); }));
}

TEST_CASE("a link that is closed while its name is resolved neither waits nor dials") {
  loop::Loop loop;
  const loop_test::FakeNames names;
  names.set("b.test", {"127.0.0.1"});
  names.hold();
  const std::size_t before = names.begun();
  {
    PeerNode a(loop, 1, kQuick);
    a.links->set_members({a.member(), {.id = 2, .address = "b@b.test:1"}});
    REQUIRE(run_until(loop, [&] { return names.begun() > before; }));
    a.links->set_members({a.member()});
    a.links->set_members({a.member(), {.id = 2, .address = "b@b.test:2"}});
    run_ticks(loop, 2);
  }
  names.release();
  run_ticks(loop, 5);
}

TEST_CASE("no frame of a former connection is delivered after a later one has its welcome") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  a.links->set_members({a.member(), {.id = 2, .address = "b@127.0.0.1:1"}});
  RawPeer former = a.dial();
  former.send(encode(a.hello(2)));
  REQUIRE(cluster::decode_welcome(former.take_frame())->status == WelcomeStatus::ok);
  const std::string second = frame_of(2);
  former.send(frame_of(1) + second.substr(0, second.size() / 2));
  REQUIRE(run_until(loop, [&] { return a.frames.size() == 1; }));

  RawPeer later = a.dial();
  later.send(encode(a.hello(2)));
  REQUIRE(cluster::decode_welcome(later.take_frame())->status == WelcomeStatus::ok);
  CHECK(former.is_closed());
  later.send(frame_of(3));
  REQUIRE(run_until(loop, [&] { return a.frames.size() == 2; }));
  run_ticks(loop, 5);
  CHECK(a.frames.size() == 2);
  CHECK(index_of(a.frames[1].second) == 3);
  // The connection of another node is not touched.
  a.links->set_members(
      {a.member(), {.id = 2, .address = "b@127.0.0.1:1"}, {.id = 3, .address = "c@127.0.0.1:1"}});
  CHECK(answer_to(a, a.hello(3)) == WelcomeStatus::ok);
  later.send(frame_of(5));
  CHECK(run_until(loop, [&] { return a.frames.size() == 3; }));
}

TEST_CASE("a hello is answered by who the node is, and what it knows") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  a.links->set_members({a.member(), {.id = 2, .address = "b@127.0.0.1:1"}});
  CHECK(answer_to(a, a.hello(2)) == WelcomeStatus::ok);
  CHECK(answer_to(a, a.hello(3)) == WelcomeStatus::not_a_member);
  CHECK(answer_to(a, a.hello(1)) == WelcomeStatus::other_node);
  Hello hello = a.hello(2);
  hello.to = 3;
  CHECK(answer_to(a, hello) == WelcomeStatus::other_node);
  hello.to = 0;
  CHECK(answer_to(a, hello) == WelcomeStatus::other_node);
  hello.purpose = Purpose::request;
  CHECK(answer_to(a, hello) == WelcomeStatus::ok);
  hello.cluster = 8;
  CHECK(answer_to(a, hello) == WelcomeStatus::other_cluster);
  CHECK(a.turned_away.size() == 5);
  hello = a.hello(2);
  hello.name = "a";
  CHECK(answer_to(a, hello) == WelcomeStatus::ok);
  hello.name = "b";
  CHECK(answer_to(a, hello) == WelcomeStatus::other_node);
  a.facts.has_state = false;
  a.links->set_facts(a.facts);
  CHECK(answer_to(a, hello) == WelcomeStatus::other_node);  // it does not adopt that identity
  CHECK(answer_to(a, a.hello(2)) == WelcomeStatus::waiting);
  CHECK(a.turned_away.back().first == a.hello(2));
  CHECK(a.turned_away.back().second == WelcomeStatus::waiting);
}

TEST_CASE("a connection that does not begin with a hello, and only that, is closed") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  a.links->set_members({a.member(), {.id = 2, .address = "b@127.0.0.1:1"}});
  const std::string hello = encode(a.hello(2));
  std::string damaged = hello;
  damaged.back() ^= 1;
  std::string later_version = hello;
  later_version[cluster::kFrameHeaderBytes] = 2;
  journal::store_little(later_version.data() + 4,
                        crc32c(0, std::string_view(later_version).substr(8)));
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100, '\0'), std::string(4, '\xff'),
        std::string("\x40\x42\x0f\0", 4),  // 1 MB
        damaged, later_version, frame_of(1), encode(Welcome{}), hello + frame_of(1), hello + "x"}) {
    RawPeer peer = a.dial();
    peer.send(bytes);
    CHECK(peer.is_closed());
  }
  // Half a hello, and one whose sender does not wait for the answer.
  for (const std::string& bytes : {hello.substr(0, 20), hello}) {
    RawPeer peer = a.dial();
    peer.send(bytes);
    loop_test::half_close(peer.socket);
    CHECK(peer.is_closed());
  }
  CHECK(a.hellos.empty());
  CHECK(a.has_logged("connection of another node refused"));
}

TEST_CASE("a link with too many unsent bytes is closed and dialled again") {
  loop::Loop loop;
  node::PeerLimits limits = kQuick;
  limits.unsent = 16U << 20;
  PeerNode a(loop, 1, limits);
  const RawNode b(loop);
  a.links->set_members({a.member(), b.member()});
  {
    const RawPeer stuck = b.accept_and_welcome();
    REQUIRE(run_until(loop, [&] { return a.links->is_connected(2); }));
    int frames = 0;
    std::size_t most = 0;
    while (a.links->is_connected(2) && frames < 100) {
      a.links->send(2, frame_of(1, 1U << 20));
      most = std::max(most, a.links->unsent(2));
      ++frames;
    }
    CHECK(frames > 16);
    CHECK(frames < 100);
    CHECK(most <= limits.unsent);
  }
  CHECK(a.links->unsent(2) == 0);
  RawPeer again = b.accept_and_welcome();
  REQUIRE(run_until(loop, [&] { return a.links->is_connected(2); }));
  a.links->send(2, frame_of(3));
  CHECK(index_of(again.take_frame()) == 3);
}

TEST_CASE("a link that is not welcomed in time, or is answered with nonsense, is dialled again") {
  loop::Loop loop;
  const RawNode b(loop);
  {
    node::PeerLimits limits = kQuick;
    limits.welcome = 20ms;
    PeerNode impatient(loop, 1, limits);
    impatient.links->set_members({impatient.member(), b.member()});
    for (int i = 0; i < 2; ++i) {
      RawPeer silent = b.accept();
      CHECK(run_until(loop, [&] {
        silent.read();
        return silent.ended;
      }));
    }
    CHECK(impatient.has_logged("no welcome in time"));
  }
  PeerNode a(loop, 1, kQuick);
  // Connections of the impatient node may still wait to be accepted.
  const RawNode c(loop);
  a.links->set_members({a.member(), c.member()});
  for (const std::string& bytes : {encode(cluster::Response{}), std::string("SSH-2.0-x\r\n")}) {
    RawPeer peer = c.accept();
    CHECK_FALSE(peer.take_frame().empty());
    peer.send(bytes);
    CHECK(peer.is_closed());
  }
  RawPeer talkative = c.accept_and_welcome();
  REQUIRE(run_until(loop, [&] { return a.links->is_connected(2); }));
  talkative.send(encode(Welcome{}));
  CHECK(talkative.is_closed());
  RawPeer peer = c.accept_and_welcome();
  REQUIRE(run_until(loop, [&] { return a.links->is_connected(2); }));
}

TEST_CASE(
    "the host is notified that a member does not welcome this node, and the link keeps trying") {
  loop::Loop loop;
  PeerNode a(loop, 1, kQuick);
  const RawNode b(loop);
  a.links->set_members({a.member(), b.member()});
  for (std::size_t i = 1; i <= 3; ++i) {
    RawPeer peer = b.accept_and_welcome(WelcomeStatus::not_a_member);
    CHECK(peer.is_closed());
    REQUIRE(run_until(loop, [&] { return a.rejected.size() == i; }));
  }
  CHECK(a.rejected.back().first == 2);
  CHECK(a.rejected.back().second ==
        Welcome{.status = WelcomeStatus::not_a_member, .configuration_index = 9, .name = "b"});
  CHECK_FALSE(a.links->is_connected(2));
  // The reason is logged once.
  CHECK(std::count_if(a.lines.begin(), a.lines.end(), [](const std::string& line) {
          return line.find("this node is no member") != std::string::npos;
        }) == 1);
  const RawPeer peer = b.accept_and_welcome();
  CHECK(run_until(loop, [&] { return a.links->is_connected(2); }));

  // The host may remove the member in the call.
  PeerNode c(loop, 1, kQuick);
  c.then = [&] { c.links->set_members({}); };
  c.links->set_members({c.member(), b.member()});
  RawPeer last = b.accept_and_welcome(WelcomeStatus::other_cluster);
  REQUIRE(run_until(loop, [&] { return !c.rejected.empty(); }));
  CHECK(last.is_closed());
}

TEST_CASE("members that are removed or have another address are disconnected") {
  loop::Loop loop;
  PeerNode a(loop, 1, kQuick);
  PeerNode b(loop, 2, kQuick);
  PeerNode c(loop, 3, kQuick);
  const std::vector<cluster::Member> all = {a.member(), b.member(), c.member()};
  join({&a, &b, &c});
  REQUIRE(all_connected({&a, &b, &c}));
  // The link of c to a is closed by a.
  a.links->set_members({a.member(), b.member()});
  CHECK_FALSE(a.links->is_connected(3));
  REQUIRE(run_until(loop, [&] { return !c.rejected.empty(); }));
  CHECK(c.rejected.front().first == 1);
  CHECK(c.rejected.front().second.status == WelcomeStatus::not_a_member);
  CHECK(a.links->is_connected(2));
  CHECK(b.links->is_connected(3));
  a.links->set_members(all);
  REQUIRE(all_connected({&a, &b, &c}));
  // The same member elsewhere.
  c.links.reset();
  PeerNode elsewhere(loop, 3, kQuick);
  elsewhere.links->set_members(all);
  a.links->set_members({a.member(), b.member(), elsewhere.member()});
  REQUIRE(run_until(loop, [&] { return a.links->is_connected(3); }));
  a.links->send(3, frame_of(1));
  CHECK(run_until(loop, [&] { return elsewhere.frames.size() == 1; }));
  // An unchanged set changes nothing.
  const auto hellos_of_a = [&] {
    return std::count_if(b.hellos.begin(), b.hellos.end(),
                         [](const Hello& hello) { return hello.from == 1; });
  };
  a.links->set_members({a.member(), b.member(), elsewhere.member()});
  run_ticks(loop, 5);
  CHECK(a.links->is_connected(2));
  CHECK(hellos_of_a() == 1);
}

TEST_CASE("a host may remove the sender of a frame in the call") {
  loop::Loop loop;
  PeerNode a(loop, 1, kQuick);
  a.links->set_members({a.member(), {.id = 2, .address = "b@127.0.0.1:1"}});
  a.then = [&] { a.links->set_members({}); };
  RawPeer peer = a.dial();
  peer.send(encode(a.hello(2)));
  CHECK(cluster::decode_welcome(peer.take_frame()));
  peer.send(frame_of(1) + frame_of(2));
  CHECK(peer.is_closed());
  CHECK(a.frames.size() == 1);
}

TEST_CASE("a node without state learns its identity from a hello, and is a member after that") {
  loop::Loop loop;
  PeerNode a(loop, 1, kQuick);
  PeerNode b(loop, 2, kQuick);
  const std::string address = b.facts.address;
  b.facts = {.address = address};
  b.links->set_facts(b.facts);
  a.links->set_members({a.member(), {.id = 77, .address = address}});
  REQUIRE(run_until(loop, [&] { return a.rejected.size() >= 2 && b.turned_away.size() >= 2; }));
  CHECK(a.rejected.front().second.status == WelcomeStatus::waiting);
  const Hello& hello = b.turned_away.front().first;
  CHECK(hello.to == 77);
  CHECK(hello.cluster == kCluster);
  CHECK(hello.address == a.facts.address);
  // It fetches the state from the caller, and has it.
  b.facts = {.cluster = hello.cluster,
             .node = hello.to,
             .address = address,
             .configuration_index = 6,
             .has_state = true};
  b.links->set_facts(b.facts);
  b.links->set_members({a.member(), {.id = 77, .address = address}});
  REQUIRE(run_until(loop, [&] { return a.links->is_connected(77) && b.links->is_connected(1); }));
  b.links->send(1, frame_of(1));
  REQUIRE(run_until(loop, [&] { return !a.frames.empty(); }));
  CHECK(a.frames.front().first == 77);
}

TEST_CASE(
    "each hello invites by what the host answers at that moment, not by the members of a link") {
  loop::Loop loop;
  PeerNode a(loop, 1, kQuick);
  const RawNode b(loop);
  cluster::Member standby = b.member();
  standby.role = cluster::MemberRole::standby;
  a.links->set_members({a.member(), standby});
  const auto invites = [&] {
    const RawPeer peer = b.accept_and_welcome(WelcomeStatus::waiting);
    const std::size_t before = a.rejected.size();
    REQUIRE(run_until(loop, [&] { return a.rejected.size() > before; }));
    return b.hello->invites;
  };
  CHECK_FALSE(invites());
  a.invited = 3;
  CHECK_FALSE(invites());
  a.invited = 2;
  CHECK(invites());
  // The member was promoted, and the links do not know it yet.
  a.invited = 0;
  CHECK_FALSE(invites());
}

TEST_CASE("another identity closes all links, and they are dialled again with it") {
  loop::Loop loop;
  PeerNode a(loop, 1, kQuick);
  PeerNode b(loop, 2, kQuick);
  join({&a, &b});
  REQUIRE(all_connected({&a, &b}));
  a.facts.configuration_index = 6;
  a.links->set_facts(a.facts);
  CHECK(a.links->is_connected(2));
  a.facts.cluster = 8;
  a.links->set_facts(a.facts);
  CHECK_FALSE(a.links->is_connected(2));
  REQUIRE(run_until(loop, [&] { return !a.rejected.empty() && !b.rejected.empty(); }));
  CHECK(a.rejected.front().second.status == WelcomeStatus::other_cluster);
  CHECK(b.rejected.front().second.configuration_index == 6);
  a.facts.cluster = kCluster;
  a.links->set_facts(a.facts);
  CHECK(all_connected({&a, &b}));
}

TEST_CASE("a member without an address that can be dialled has no link") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  a.links->set_members({a.member(), {.id = 2, .address = "b"}});
  CHECK(a.has_logged("a member has no address to dial"));
  a.links->send(2, frame_of(1));
  CHECK_FALSE(a.links->is_connected(2));
}

TEST_CASE("a connection to fetch the state is handed to the host after its welcome") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  a.links->set_members({a.member(), {.id = 2, .address = "b@127.0.0.1:1"}});
  RawPeer peer = a.dial();
  peer.send(encode(a.hello(2, Purpose::fetch)));
  CHECK(cluster::decode_welcome(peer.take_frame())->status == WelcomeStatus::ok);
  REQUIRE(a.fetches.size() == 1);
  CHECK(a.fetches.front().first == a.hello(2, Purpose::fetch));
  const os::Socket& socket = a.fetches.front().second.socket;
  peer.send("list");
  CHECK(loop_test::read_exactly(socket, 4) == "list");
  loop_test::write_all(socket, "files");
  CHECK(loop_test::read_exactly(peer.socket, 5) == "files");
}

TEST_CASE("a node of a cluster from which this one was recovered is superseded") {
  loop::Loop loop;
  PeerNode a(loop, 1, kQuick);
  const RawNode b(loop);
  a.links->set_members({a.member(), b.member()});
  a.links->set_former_clusters({0xf0, 0xf1});
  for (const std::uint64_t former : {0xf0U, 0xf1U}) {
    Hello hello = a.hello(2);
    hello.cluster = former;
    hello.name = "another";  // the recovered node may have another name
    hello.level = cluster::kLevelOfNames;
    CHECK(answer_to(a, hello) == WelcomeStatus::superseded);
    hello.level = cluster::kLevelOfNames - 1;
    hello.name.clear();
    CHECK(answer_to(a, hello) == WelcomeStatus::other_cluster);
  }
  Hello stranger = a.hello(2);
  stranger.cluster = 0xf2;
  stranger.level = cluster::kLevelOfNames;
  CHECK(answer_to(a, stranger) == WelcomeStatus::other_cluster);
}

TEST_CASE("a node that does not know the level in use is not accepted, and the log says so") {
  loop::Loop loop;
  PeerNode a(loop, 1, kQuick);
  a.facts.level = cluster::kFeatureLevel;
  a.links->set_facts(a.facts);
  const RawNode b(loop);
  a.links->set_members({a.member(), b.member()});
  Hello hello = a.hello(2);
  // A version without levels knows no other refusal after which it tries again.
  CHECK(answer_to(a, hello) == WelcomeStatus::busy);
  CHECK(a.turned_away.back().second == WelcomeStatus::too_old);
  CHECK(
      a.has_logged(fmt::format("it knows only feature level 1, and the cluster uses {}: upgrade it",
                               cluster::kFeatureLevel)));
  hello.level = cluster::kFeatureLevel;
  CHECK(answer_to(a, hello) == WelcomeStatus::ok);
  CHECK(a.links->last_level(2) == cluster::kFeatureLevel);
  a.facts.level = cluster::kFeatureLevel + 1;
  a.links->set_facts(a.facts);
  CHECK(answer_to(a, hello) == WelcomeStatus::too_old);
  // A node that it dials answers with level 1.
  RawPeer peer = b.accept_and_welcome();
  CHECK(peer.is_closed());
  CHECK(b.hello->level == cluster::kFeatureLevel);
  CHECK_FALSE(a.links->is_connected(2));
  CHECK(a.links->connected_level(2) == 0);
}

TEST_CASE("two nodes learn each other's level, and forget it when they are not connected") {
  loop::Loop loop;
  PeerNode a(loop, 1, kQuick);
  auto b = std::make_unique<PeerNode>(loop, 2, kQuick);
  CHECK(a.links->last_level(2) == 0);
  join({&a, b.get()});
  REQUIRE(all_connected({&a, b.get()}));
  CHECK(a.links->connected_level(2) == cluster::kFeatureLevel);
  b.reset();
  REQUIRE(run_until(loop, [&] { return !a.links->is_connected(2); }));
  CHECK(a.links->connected_level(2) == 0);
  CHECK(a.links->last_level(2) == cluster::kFeatureLevel);
}

TEST_CASE("a frame of a later protocol version closes the link, with one line in the log") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  a.links->set_members({a.member(), {.id = 2, .address = "b@127.0.0.1:1"}});
  const auto as_later = [](std::string frame) {
    frame[cluster::kFrameHeaderBytes] = 2;
    journal::store_little(frame.data() + 4, crc32c(0, std::string_view(frame).substr(8)));
    return frame;
  };
  const auto lines = [&a] {
    return std::ranges::count_if(a.lines, [](const std::string& line) {
      return line.find("speaks version 2 of the protocol between nodes") != std::string::npos;
    });
  };
  for (int i = 0; i < 3; ++i) {
    RawPeer peer = a.dial();
    peer.send(encode(a.hello(2)));
    REQUIRE(cluster::decode_welcome(peer.take_frame())->status == WelcomeStatus::ok);
    peer.send(as_later(frame_of(1)));
    CHECK(peer.is_closed());
    CHECK(lines() == 1);
  }
  CHECK(a.frames.empty());
  for (int i = 0; i < 3; ++i) {
    RawPeer peer = a.dial();
    peer.send(as_later(encode(a.hello(2))));
    CHECK(peer.is_closed());
    CHECK(lines() == 2);
  }
}

}  // namespace tubed::server_test
