#include "node/client_forwarder.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "node/forwarded_client.h"
#include "tests/server/peer_node.h"

namespace tubed::server_test {

using cluster::ForwardedClient;
using node::ClientForwarder;
using node::ClientForwarderHost;

namespace {

// A node that does not lead, with its clients.
struct Follower final : ClientForwarderHost {
  explicit Follower(loop::Loop& its_loop, const node::PeerLimits& its_limits = kQuick)
      : loop(its_loop), limits(its_limits), node(its_loop, 2, its_limits) {}

  // Makes the node know the leader, which is at its own address or at another.
  void follow(const PeerNode& other, std::optional<std::uint16_t> port = {}) {
    known =
        Leader{.node = other.id,
               .address = {.name = "a", .host = "127.0.0.1", .port = port.value_or(other.port())}};
  }
  // Adds a client; returns its other end.
  RawPeer connect(Duration leader_wait = 1h) {
    auto [end, here] = loop_test::connected_pair();
    auto channel = loop::open_channel(loop, std::move(end), {});
    forwarder.forward(std::move(channel), {.address = "192.0.2.1:5", .listener = "127.0.0.1:11300"},
                      {.leader_wait = leader_wait, .stall = 1h});
    return {.loop = loop, .socket = std::move(here)};
  }

  bool serves() const override { return serving; }
  std::optional<Leader> leader() const override { return known; }
  node::CallerHandshake begin_client(const Leader& leader,
                                     const ForwardedClient& client) const override {
    return node.links->begin_client({.id = leader.node, .address = to_string(leader.address)},
                                    client);
  }
  void begin_tick() override { in_tick = true; }
  void serve(std::unique_ptr<loop::Channel> channel, const ForwardedClient& client) override {
    CHECK(in_tick);
    CHECK(client.address == "192.0.2.1:5");
    served.push_back(std::move(channel));
  }
  void hold(std::unique_ptr<loop::Channel> channel) override {
    CHECK(in_tick);
    REQUIRE(channel != nullptr);
    held.push_back(std::move(channel));
  }

  loop::Loop& loop;
  const node::PeerLimits limits;
  PeerNode node;
  std::optional<Leader> known;
  bool serving = false;
  bool in_tick = false;
  std::vector<std::unique_ptr<loop::Channel>> served;
  std::vector<std::unique_ptr<loop::Channel>> held;
  ClientForwarder forwarder{loop, node.log, limits, *this};
};

std::uint16_t port_of(const os::Socket& socket) {
  const std::string address = os::local_address(socket);
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

// A leader and a follower of one cluster.
struct Two {
  explicit Two(const node::PeerLimits& limits = kQuick) : leader(loop, 1), follower(loop, limits) {
    join({&leader, &follower.node});
  }
  // Runs the loop until the leader has this many clients.
  bool passes_on(std::size_t count) {
    return loop_test::run_until(loop, [&] { return leader.clients.size() == count; });
  }

  loop::Loop loop;
  PeerNode leader;
  Follower follower;
};

}  // namespace

TEST_CASE("a client is passed to the leader, with its address and its listener") {
  Two two;
  two.follower.follow(two.leader);
  RawPeer client = two.follower.connect();
  client.send("stats\r\n");
  REQUIRE(two.passes_on(1));
  const auto& [hello, socket] = two.leader.clients.front();
  CHECK(hello.purpose == cluster::Purpose::client);
  CHECK(hello.from == 2);
  CHECK(hello.client.address == "192.0.2.1:5");
  CHECK(hello.client.listener == "127.0.0.1:11300");
  RawPeer server{.loop = two.loop, .socket = os::Socket(::dup(socket.socket.descriptor()))};
  REQUIRE(loop_test::run_until(two.loop, [&] {
    server.read();
    return server.input == "stats\r\n";
  }));
  server.send("OK 0\r\n\r\n");
  REQUIRE(loop_test::run_until(two.loop, [&] {
    client.read();
    return client.input == "OK 0\r\n\r\n";
  }));
  CHECK(two.follower.forwarder.count() == 1);
}

TEST_CASE("clients wait for a leader, and what they have sent meanwhile is passed on") {
  Two two;
  RawPeer client = two.follower.connect();
  client.send("quit\r\n");
  loop_test::half_close(client.socket);
  loop_test::run_ticks(two.loop, 10);
  CHECK(two.follower.forwarder.count() == 1);
  two.follower.follow(two.leader);
  two.follower.forwarder.leader_changed();
  REQUIRE(two.passes_on(1));
  std::string got;
  REQUIRE(loop_test::run_until(two.loop, [&] {
    got += loop_test::read_some(two.leader.clients.front().second.socket);
    return got == "quit\r\n";
  }));
}

TEST_CASE("a client that has waited in vain is closed") {
  Two two;
  RawPeer client = two.follower.connect(1ms);
  REQUIRE(loop_test::run_until(two.loop, [&] { return two.follower.held.size() == 1; }));
  CHECK(two.follower.node.has_logged("clients have waited in vain for a leader"));
  CHECK(two.follower.node.has_logged("no leader is known"));
  CHECK(two.follower.forwarder.count() == 0);
}

TEST_CASE("a leader that refuses the connection is dialled again") {
  Two two;
  const os::Socket closed = loop_test::refusing();
  const std::string address = os::local_address(closed);
  two.follower.follow(
      two.leader, static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  RawPeer client = two.follower.connect();
  loop_test::run_ticks(two.loop, 20);
  CHECK(two.follower.forwarder.count() == 1);
  two.follower.follow(two.leader);
  REQUIRE(two.passes_on(1));
}

TEST_CASE("a node that begins to serve serves the clients that wait") {
  Two two;
  const RawPeer one = two.follower.connect();
  const RawPeer other = two.follower.connect();
  two.follower.serving = true;
  two.follower.forwarder.leader_changed();
  REQUIRE(loop_test::run_until(two.loop, [&] { return two.follower.served.size() == 2; }));
  CHECK(two.follower.forwarder.count() == 0);
  CHECK(two.leader.clients.empty());
}

TEST_CASE("only some connections to the leader are opened at a time") {
  Two two;
  // It accepts no connection and answers nothing.
  const os::Socket silent = loop_test::listening();
  const std::string address = os::local_address(silent);
  two.follower.follow(
      two.leader, static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  std::vector<RawPeer> clients;
  for (std::size_t number = 0; number < 3 * ClientForwarder::kMostDials; ++number)
    clients.push_back(two.follower.connect());
  std::vector<os::Socket> accepted;
  const auto accept_all = [&] {
    while (os::Socket one = os::accept_from(silent)) accepted.push_back(std::move(one));
    return accepted.size() >= ClientForwarder::kMostDials;
  };
  REQUIRE(loop_test::run_until(two.loop, accept_all));
  loop_test::run_ticks(two.loop, 50);
  accept_all();
  CHECK(accepted.size() == ClientForwarder::kMostDials);
  // Each that fails makes room for another attempt.
  two.follower.follow(two.leader);
  accepted.clear();
  CHECK(two.passes_on(clients.size()));
}

TEST_CASE("a client that leaves makes room for the next") {
  Two two;
  // It accepts no connection and answers nothing.
  const os::Socket silent = loop_test::listening();
  two.follower.follow(two.leader, port_of(silent));
  std::vector<RawPeer> first;
  for (std::size_t number = 0; number < ClientForwarder::kMostDials; ++number)
    first.push_back(two.follower.connect(1ms));
  const RawPeer next = two.follower.connect();
  two.follower.follow(two.leader);
  REQUIRE(two.passes_on(1));
  CHECK(loop_test::run_until(two.loop, [&] { return two.follower.held.size() == first.size(); }));
}

TEST_CASE("attempts to reach a former leader are given up for the next") {
  Two two;
  const os::Socket silent = loop_test::listening();
  two.follower.follow(two.leader, port_of(silent));
  two.follower.known->node = 3;
  std::vector<RawPeer> clients;
  for (std::size_t number = 0; number < 2 * ClientForwarder::kMostDials; ++number)
    clients.push_back(two.follower.connect());
  two.follower.follow(two.leader);
  two.follower.forwarder.leader_changed();
  CHECK(two.passes_on(clients.size()));
}

TEST_CASE("what the leader sends with its welcome is passed on") {
  Two two;
  const os::Socket listening = loop_test::listening();
  two.follower.follow(two.leader, port_of(listening));
  RawPeer client = two.follower.connect();
  os::Socket accepted;
  REQUIRE(loop_test::run_until(two.loop, [&] {
    accepted = os::accept_from(listening);
    return bool{accepted};
  }));
  RawPeer server{.loop = two.loop, .socket = std::move(accepted)};
  REQUIRE(cluster::decode_hello(server.take_frame()));
  server.send(encode(cluster::Welcome{.name = "a"}) + "OUT_OF_MEMORY\r\n");
  server.socket = os::Socket();
  REQUIRE(loop_test::run_until(two.loop, [&] {
    client.read();
    return client.ended;
  }));
  CHECK(client.input == "OUT_OF_MEMORY\r\n");
}

TEST_CASE("clients of a former leader are closed after a while") {
  node::PeerLimits limits = kQuick;
  limits.user_timeout = 1ms;
  Two two(limits);
  two.follower.follow(two.leader);
  RawPeer client = two.follower.connect();
  client.send("x");
  REQUIRE(two.passes_on(1));
  REQUIRE(loop_test::run_until(two.loop, [&] {
    return loop_test::read_some(two.leader.clients.front().second.socket) == "x";
  }));
  // No leader is known: the former may lead again.
  const auto former = std::exchange(two.follower.known, std::nullopt);
  two.follower.forwarder.leader_changed();
  // This timer expires after that of the forwarder.
  bool expired = false;
  loop::Timer later(two.loop, [&] { expired = true; });
  later.arm(2 * limits.user_timeout);
  REQUIRE(loop_test::run_until(two.loop, [&] { return expired; }));
  CHECK(two.follower.forwarder.count() == 1);
  two.follower.known = former;
  two.follower.known->node = 3;
  two.follower.forwarder.leader_changed();
  CHECK(client.is_closed());
  CHECK(two.follower.forwarder.count() == 0);
}

TEST_CASE("connections of a former secret end, and clients that wait are dialled for again") {
  Two two;
  two.follower.follow(two.leader);
  RawPeer client = two.follower.connect();
  REQUIRE(two.passes_on(1));
  loop_test::run_ticks(two.loop, 10);
  RawPeer waits = two.follower.connect();  // its dial is under way
  two.follower.forwarder.security_changed();
  CHECK(client.is_closed());
  waits.send("x");
  CHECK(loop_test::run_until(two.loop, [&] {
    return loop_test::read_some(two.leader.clients.back().second.socket) == "x";
  }));
  CHECK(two.follower.forwarder.count() == 1);
}

TEST_CASE("at the end, the leader answers what was sent") {
  Two two;
  two.follower.follow(two.leader);
  RawPeer client = two.follower.connect();
  client.send("delete 1\r\n");
  REQUIRE(two.passes_on(1));
  RawPeer server{.loop = two.loop, .socket = std::move(two.leader.clients.front().second.socket)};
  REQUIRE(loop_test::run_until(two.loop, [&] {
    server.read();
    return server.input == "delete 1\r\n";
  }));
  bool ended = false;
  two.follower.forwarder.end(1h, [&] { ended = true; });
  CHECK(two.follower.forwarder.ending());
  REQUIRE(loop_test::run_until(two.loop, [&] {
    server.read();
    return server.ended;
  }));
  CHECK_FALSE(ended);
  server.send("DELETED\r\n");
  server.socket = os::Socket();
  REQUIRE(loop_test::run_until(two.loop, [&] { return ended; }));
  client.read();
  CHECK(client.input == "DELETED\r\n");
}

TEST_CASE("at the end, clients that wait are closed, and others after the limit") {
  Two two;
  RawPeer waiting = two.follower.connect();
  two.follower.follow(two.leader);
  bool ended = false;
  SUBCASE("that wait") {}
  SUBCASE("that are passed on to a leader that does not answer") {
    const RawPeer passed_on = two.follower.connect();
    REQUIRE(two.passes_on(2));
  }
  two.follower.forwarder.end(1ms, [&] { ended = true; });
  REQUIRE(loop_test::run_until(two.loop, [&] { return ended; }));
  CHECK(two.follower.forwarder.count() == 0);
  CHECK(waiting.is_closed());
}

TEST_CASE("what a node says of a client gives the leader the same origin") {
  Listen listen;
  listen.port = 11300;
  listen.auth = AuthMode::mtls;
  listen.role = "workers";
  const serving::ConnectionOrigin origin{
      .listen = listen,
      .certificate = {.subject = "CN=mailer", .names = {"DNS:mailer", "URI:x"}},
      .process = os::PeerCredentials{.process = 7, .user = 8, .groups = {9, 10}}};
  loop::Loop loop;
  auto [end, here] = loop_test::connected_pair();
  const auto channel = loop::open_channel(loop, std::move(end), {},
                                          {.address = "192.0.2.1:5", .tls_name = "mailer"});
  const ForwardedClient client = node::describe_client(*channel, origin);
  CHECK(node::proxied_client(client).address == "192.0.2.1:5");
  CHECK(node::proxied_client(client).tls_name == "mailer");
  int calls = 0;
  node::with_origin(client, [&](const serving::ConnectionOrigin& same) {
    ++calls;
    CHECK(to_string(same.listen) == to_string(listen));
    CHECK(same.listen.auth == AuthMode::mtls);
    CHECK(same.listen.role == "workers");
    CHECK(same.certificate.subject == "CN=mailer");
    CHECK(same.certificate.names == origin.certificate.names);
    REQUIRE(same.process);
    CHECK(same.process->user == 8);
    CHECK(same.process->groups == origin.process->groups);
  });
  ForwardedClient later = client;
  later.auth = 200;
  node::with_origin(later, [&](const serving::ConnectionOrigin&) { ++calls; });
  CHECK(calls == 1);
}

}  // namespace tubed::server_test
