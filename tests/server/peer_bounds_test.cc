// The bounds of connections that other nodes have dialled, the purposes for which each node may use
// them, and frames that no node sends.
#include <algorithm>
#include <memory>
#include <vector>

#include "tests/loop/fake_names.h"
#include "tests/server/peer_node.h"

namespace tubed::server_test {

using cluster::Hello;
using cluster::Purpose;
using cluster::WelcomeStatus;
using loop_test::run_ticks;
using loop_test::run_until;

namespace {

// Connects to the node `count` times from an address of loopback, and sends nothing.
std::vector<std::unique_ptr<RawPeer>> dial_silently(const PeerNode& node, const char* from,
                                                    int count) {
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < count; ++i) {
    peers.push_back(std::make_unique<RawPeer>(
        RawPeer{node.loop, loop_test::connect_from(from, node.links->address())}));
    run_ticks(node.loop, 2);
  }
  return peers;
}

// True once the node has closed `count` connections, and no more.
bool closes(const std::vector<std::unique_ptr<RawPeer>>& peers, long count) {
  const auto closed = [&peers] {
    return std::ranges::count_if(peers, [](const auto& peer) {
      peer->read();
      return peer->ended;
    });
  };
  loop::Loop& loop = peers.front()->loop;
  if (!run_until(loop, [&] { return closed() >= count; })) return false;
  run_ticks(loop, 5);
  return closed() == count;
}

}  // namespace

TEST_CASE("a node that knows a later configuration may send messages, and nothing else") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  a.links->set_members({a.member(), {.id = 2, .address = "b@127.0.0.1:1"}});
  const auto answer = [&](cluster::NodeId from, Purpose purpose, cluster::Index knows) {
    Hello hello = a.hello(from, purpose);
    hello.configuration_index = knows;
    return answer_to(a, hello);
  };
  for (const Purpose purpose : {Purpose::frames, Purpose::fetch, Purpose::request}) {
    CHECK(answer(2, purpose, 5) == WelcomeStatus::ok);
    CHECK(answer(2, purpose, 6) == WelcomeStatus::ok);
    CHECK(answer(3, purpose, 5) == WelcomeStatus::not_a_member);
  }
  CHECK(answer(3, Purpose::frames, 6) == WelcomeStatus::ok);
  CHECK(a.fetches.size() == 2);
  CHECK(answer(3, Purpose::fetch, 6) == WelcomeStatus::not_a_member);
  CHECK(answer(3, Purpose::request, 6) == WelcomeStatus::not_a_member);
  Hello to_any = a.hello(3, Purpose::request);
  to_any.to = 0;
  to_any.configuration_index = 6;
  CHECK(answer_to(a, to_any) == WelcomeStatus::not_a_member);
  CHECK(a.fetches.size() == 2);
  CHECK(a.requests.empty());
  // It must know the level in use.
  a.facts.level = cluster::kFeatureLevel;
  a.links->set_facts(a.facts);
  CHECK(answer(3, Purpose::frames, 6) == WelcomeStatus::busy);
  CHECK(a.turned_away.back().second == WelcomeStatus::too_old);
}

TEST_CASE("a connection of a node ends if the later configuration does not have it") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  const cluster::Member b{.id = 2, .address = "b@127.0.0.1:1"};
  const cluster::Member c{.id = 3, .address = "c@127.0.0.1:1"};
  a.links->set_members({a.member(), b});
  const auto connect = [&](cluster::NodeId from) {
    RawPeer peer = a.dial();
    Hello hello = a.hello(from);
    hello.configuration_index = from + 4;
    peer.send(encode(hello));
    REQUIRE(cluster::decode_welcome(peer.take_frame())->status == WelcomeStatus::ok);
    return peer;
  };
  RawPeer third = connect(3);
  RawPeer fourth = connect(4);
  const auto learn = [&](cluster::Index index, const std::vector<cluster::Member>& members) {
    a.facts.configuration_index = index;
    a.links->set_facts(a.facts);
    a.links->set_members(members);
  };
  learn(6, {a.member(), b});
  third.send(frame_of(1));
  fourth.send(frame_of(2));
  REQUIRE(run_until(loop, [&] { return a.frames.size() == 2; }));
  learn(7, {a.member(), b, c});
  fourth.send(frame_of(3));
  REQUIRE(run_until(loop, [&] { return a.frames.size() == 3; }));
  learn(8, {a.member(), b, c});
  CHECK(fourth.is_closed());
  third.send(frame_of(4));
  CHECK(run_until(loop, [&] { return a.frames.size() == 4; }));
}

TEST_CASE(
    "a connection without a hello is closed after a time, and the oldest of too many at once") {
  loop::Loop loop;
  node::PeerLimits limits = kQuick;
  limits.hello = 20ms;
  PeerNode a(loop, 1, limits);
  RawPeer silent = a.dial();
  CHECK(silent.is_closed());
  CHECK(a.has_logged("no hello in time"));

  limits = kQuick;
  limits.strangers = 3;
  PeerNode b(loop, 1, limits);
  const auto peers = dial_silently(b, "127.0.0.1", 5);
  CHECK(closes(peers, 2));
  CHECK(peers[0]->is_closed());
  CHECK(peers[1]->is_closed());
  for (std::size_t i = 2; i < 5; ++i) {
    peers[i]->send(encode(b.hello(2)));
    CHECK(cluster::decode_welcome(peers[i]->take_frame()));
  }
  CHECK(b.has_logged("too many wait for a hello"));
}

TEST_CASE("hosts without members do not keep members from connecting") {
  loop::Loop loop;
  node::PeerLimits limits = kQuick;
  limits.pending_of_member = 2;
  limits.requests = 1;
  limits.strangers = 3;
  PeerNode a(loop, 1, limits);
  a.links->set_members({a.member(), {.id = 2, .address = "b@127.0.0.1:1"}});
  const auto of_member = dial_silently(a, "127.0.0.1", 3);
  const auto others = dial_silently(a, "127.0.0.2", 10);
  const auto elsewhere = dial_silently(a, "127.0.0.3", 1);
  CHECK(closes(of_member, 0));
  CHECK(closes(others, 8));
  CHECK(closes(elsewhere, 0));
  of_member.front()->send(encode(a.hello(2)));
  CHECK(cluster::decode_welcome(of_member.front()->take_frame()));
  // Its handshake is over.
  const auto more = dial_silently(a, "127.0.0.1", 2);
  CHECK(closes(of_member, 1));
  CHECK(closes(more, 0));
  // Each member adds to the limit of its host.
  a.links->set_members({a.member(),
                        {.id = 2, .address = "b@127.0.0.1:1"},
                        {.id = 3, .address = "c@127.0.0.1:2"},
                        {.id = 4, .address = "d@127.0.0.4:2"}});
  const auto of_two = dial_silently(a, "127.0.0.1", 3);
  CHECK(closes(of_member, 2));
  CHECK(closes(more, 0));
  CHECK(closes(of_two, 0));
}

TEST_CASE("a member with a name is known where the name leads, and where it was accepted from") {
  loop::Loop loop;
  node::PeerLimits limits = kQuick;
  limits.pending_of_member = 2;
  limits.requests = 1;
  limits.strangers = 3;
  const loop_test::FakeNames names;
  PeerNode a(loop, 1, limits);
  a.links->set_members({a.member(), {.id = 2, .address = "b@b.test:1"}});
  REQUIRE(run_until(loop, [&] { return a.has_logged("cannot resolve b.test: Name or service"); }));
  {
    const auto others = dial_silently(a, "127.0.0.2", 5);
    CHECK(closes(others, 2));
  }
  names.set("b.test", {"127.0.0.9", "127.0.0.2"});
  REQUIRE(run_until(loop, [&] { return a.has_logged("Connection refused"); }));
  const auto of_member = dial_silently(a, "127.0.0.2", 3);
  const auto others = dial_silently(a, "127.0.0.3", 10);
  CHECK(closes(of_member, 0));
  CHECK(closes(others, 7));
  // It has moved, and its new address is not found yet.
  RawPeer moved{loop, loop_test::connect_from("127.0.0.4", a.links->address())};
  moved.send(encode(a.hello(2)));
  REQUIRE(cluster::decode_welcome(moved.take_frame())->status == WelcomeStatus::ok);
  const auto of_moved = dial_silently(a, "127.0.0.4", 3);
  const auto strangers = dial_silently(a, "127.0.0.3", 4);
  CHECK(closes(of_moved, 0));
  CHECK(closes(strangers, 1));
}

TEST_CASE("only so many nodes that are not known to be members may send messages") {
  loop::Loop loop;
  node::PeerLimits limits = kQuick;
  limits.strangers = 2;
  PeerNode a(loop, 1, limits);
  const cluster::Member b{.id = 2, .address = "b@127.0.0.1:1"};
  a.links->set_members({a.member(), b});
  std::vector<RawPeer> peers;
  const auto connect = [&](cluster::NodeId from) {
    peers.push_back(a.dial());
    Hello hello = a.hello(from);
    hello.configuration_index = 100;
    peers.back().send(encode(hello));
    return cluster::decode_welcome(peers.back().take_frame())->status;
  };
  CHECK(connect(3) == WelcomeStatus::ok);
  CHECK(connect(4) == WelcomeStatus::ok);
  CHECK(connect(5) == WelcomeStatus::busy);
  CHECK(connect(2) == WelcomeStatus::ok);
  CHECK(connect(4) == WelcomeStatus::ok);  // in place of its former one
  a.links->set_members({a.member(), b, {.id = 3, .address = "c@127.0.0.1:1"}});
  CHECK(connect(5) == WelcomeStatus::ok);
  CHECK(connect(6) == WelcomeStatus::busy);
}

TEST_CASE("a hello of a few kilobytes is read, and a longer one is not") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  Hello hello = a.hello(2);
  const std::size_t rest = encode(hello).size() - hello.address.size();
  hello.address.resize(node::kMostHelloBytes - rest, 'x');
  CHECK(answer_to(a, hello) == WelcomeStatus::not_a_member);
  hello.address += 'x';
  RawPeer peer = a.dial();
  peer.send(encode(hello));
  CHECK(peer.is_closed());
  // Its length alone is enough.
  RawPeer announces = a.dial();
  announces.send(encode(hello).substr(0, 4));
  CHECK(announces.is_closed());
  CHECK(a.hellos.size() == 1);
  CHECK(a.has_logged("the other node has sent something that is no frame"));
}

TEST_CASE("a frame that the host refuses closes the link, with one line in the log") {
  loop::Loop loop;
  PeerNode a(loop, 1);
  const std::vector<cluster::Member> members{a.member(), {.id = 2, .address = "b@127.0.0.1:1"}};
  a.links->set_members(members);
  const auto lines = [&a](std::string_view text) {
    return std::ranges::count_if(
        a.lines, [text](const std::string& line) { return line.find(text) != std::string::npos; });
  };
  const auto send = [&](const std::string& frames) {
    RawPeer peer = a.dial();
    peer.send(encode(a.hello(2)));
    REQUIRE(cluster::decode_welcome(peer.take_frame())->status == WelcomeStatus::ok);
    peer.send(frames);
    CHECK(peer.is_closed());
  };
  a.fault = "it is forged";
  for (int i = 0; i < 3; ++i) send(frame_of(1) + frame_of(2));
  CHECK(a.frames.size() == 3);  // the second of two is not read
  CHECK(lines("a frame is refused: it is forged") == 1);
  a.fault = "it is odd";
  send(frame_of(1));
  CHECK(lines("a frame is refused: it is odd") == 1);
  // The host has removed the sender in the call.
  a.then = [&] { a.links->set_members({a.member()}); };
  send(frame_of(1));
  CHECK(a.frames.size() == 5);
}

}  // namespace tubed::server_test
