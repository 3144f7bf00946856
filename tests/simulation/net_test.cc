// Connections of the simulation.
#include "tests/simulation/net.h"

#include <string>

#include <doctest/doctest.h>

#include "os/socket.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

namespace {

void pass(World& world, Duration duration) {
  const Time end = world.now() + duration;
  while (world.next() <= end) {
    world.pass_to(world.next());
    world.run_due();
  }
  world.pass_to(end);
}

// A client's connection that the server has accepted.
struct Connected {
  explicit Connected(const Link& to_server = {}, const Link& to_client = {}) {
    auto listening = os::listen_tcp("127.0.0.1", 11300, 1);
    REQUIRE(listening.ok());
    listener = std::move(*listening);
    client = net.connect(11300, to_server, to_client);
    REQUIRE(client != nullptr);
    server = os::accept_from(listener);
    REQUIRE(server);
  }

  std::string read() {
    std::array<char, 4096> buffer;
    const os::Transfer transfer = os::read_into(server, std::span<char>(buffer));
    return {buffer.data(), transfer.bytes};
  }
  os::Transfer::Kind state() {
    std::array<char, 1> buffer;
    return os::read_into(server, std::span<char>(buffer)).kind;
  }

  World world{7};
  Net net{world};
  os::Socket listener;
  std::shared_ptr<Endpoint> client;
  os::Socket server;
};

}  // namespace

TEST_CASE(
    "the network is settled when the server has closed the connections that clients have left") {
  World world(5);
  Net net(world);
  const int listening = net.listen(11300);
  CHECK(net.is_settled());
  const auto client = net.connect(11300, {}, {});
  CHECK_FALSE(net.is_settled());  // waiting to be accepted
  const int accepted = net.accept(listening);
  CHECK(net.is_settled());
  CHECK(net.open_connections() == 1);
  client->close();
  CHECK_FALSE(net.is_settled());
  pass(world, 1ms);
  CHECK_FALSE(net.is_settled());
  net.close(accepted);
  CHECK(net.is_settled());
  CHECK(net.open_connections() == 0);
}

TEST_CASE("bytes arrive in order, in pieces, after their latency") {
  Connected connected({.latency = 1ms, .jitter = 3ms, .cuts = 50});
  std::string sent;
  for (int i = 0; i < 200; ++i) {
    const std::string text = std::to_string(i) + ' ';
    CHECK(connected.client->send(text) == text.size());
    sent += text;
  }
  CHECK(connected.state() == os::Transfer::Kind::would_block);
  std::string read;
  int reads = 0;
  for (int i = 0; i < 1000 && read.size() < sent.size(); ++i) {
    pass(connected.world, 20us);
    const std::string piece = connected.read();
    reads += piece.empty() ? 0 : 1;
    read += piece;
  }
  CHECK(read == sent);
  CHECK(reads > 1);
}

TEST_CASE("a connection accepts as many bytes as fit into its window") {
  Connected connected({}, {.window = 100});
  CHECK(os::write_from(connected.server, std::string(70, 'x')).bytes == 70);
  CHECK(os::write_from(connected.server, std::string(70, 'x')).bytes == 30);
  CHECK(os::write_from(connected.server, "x").kind == os::Transfer::Kind::would_block);
  pass(connected.world, 1ms);
  CHECK(os::write_from(connected.server, "x").kind == os::Transfer::Kind::would_block);
  connected.client->take(40);
  CHECK(os::write_from(connected.server, std::string(70, 'x')).bytes == 40);
}

TEST_CASE("the end of a stream arrives after its bytes") {
  Connected connected({.latency = 1ms, .jitter = 1ms});
  connected.client->send("abc");
  connected.client->end_output();
  pass(connected.world, 5ms);
  CHECK(connected.read() == "abc");
  CHECK(connected.state() == os::Transfer::Kind::end);
  CHECK(os::has_ended(connected.server));
  CHECK(os::write_from(connected.server, "answer").bytes == 6);
  pass(connected.world, 1ms);
  CHECK(connected.client->arrived() == "answer");
}

TEST_CASE("a close with unread bytes resets the connection; any other close ends it") {
  {
    Connected connected;
    connected.client->send("abc");
    pass(connected.world, 1ms);
    connected.server = os::Socket();
    CHECK(connected.client->lost());
  }
  {
    Connected connected;
    connected.server = os::Socket();
    CHECK_FALSE(connected.client->lost());
    pass(connected.world, 1ms);
    CHECK(connected.client->ended());
  }
}

TEST_CASE("a client that resets is lost to the server at once") {
  Connected connected;
  connected.client->send("abc");
  connected.client->reset();
  CHECK(connected.state() == os::Transfer::Kind::failed);
}

TEST_CASE("the end of the process resets its connections, and nothing listens") {
  Connected connected;
  const auto waiting = connected.net.connect(11300, {}, {});
  connected.net.end_process();
  CHECK(connected.client->lost());
  CHECK(waiting->lost());
  CHECK(connected.net.connect(11300, {}, {}) == nullptr);
  CHECK(os::write_from(connected.server, "x").kind == os::Transfer::Kind::failed);
}

}  // namespace tubed::simulation
