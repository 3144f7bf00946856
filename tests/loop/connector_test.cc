#include "loop/connector.h"

#include <array>
#include <optional>

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/loop/loopback.h"

namespace tubed::loop_test {

using namespace std::chrono_literals;

using loop::Channel;
using loop::ConnectOptions;
using loop::Connector;
using loop::Loop;
using os::Socket;

namespace {

using Connected = Result<std::unique_ptr<Channel>>;

std::uint16_t port_of(const Socket& socket) {
  const std::string address = os::local_address(socket);
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

Socket accepted(const Socket& listener) {
  return Socket(::accept4(listener.descriptor(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
}

struct Attempt {
  Attempt(Loop& loop, const std::string& host, std::uint16_t port,
          const ConnectOptions& options = {.limit = kLastResort})
      : connector(std::make_unique<Connector>(loop, host, port, options, [this](Connected result) {
          connector.reset();
          connected.emplace(std::move(result));
        })) {}

  std::unique_ptr<Connector> connector;
  std::optional<Connected> connected;
};

}  // namespace

TEST_CASE("a connection is delivered as a channel, with its options set") {
  Loop loop;
  const Socket listener = listening();
  Attempt attempt(loop, "127.0.0.1", port_of(listener),
                  {.limit = kLastResort, .user_timeout = 1500ms});
  CHECK_FALSE(attempt.connected);  // not within the constructor
  REQUIRE(run_until(loop, [&] { return attempt.connected.has_value(); }));
  REQUIRE(attempt.connected->ok());
  const Socket there = accepted(listener);
  REQUIRE(there);
  Channel& channel = *attempt.connected->value();
  CHECK(channel.write("hello").bytes == 5);
  CHECK(read_exactly(there, 5) == "hello");
  const Socket socket = channel.release_connection().socket;
  CHECK(option_of(socket, IPPROTO_TCP, TCP_NODELAY) == 1);
  CHECK(option_of(socket, IPPROTO_TCP, TCP_USER_TIMEOUT) == 1500);
  CHECK(option_of(socket, SOL_SOCKET, SO_KEEPALIVE) == 1);
}

TEST_CASE("a connection over IPv6") {
  if (!has_ipv6()) return;
  Loop loop;
  const auto listener = os::listen_tcp("::1", 0, 1);
  REQUIRE(listener.ok());
  Attempt attempt(loop, "::1", port_of(*listener));
  REQUIRE(run_until(loop, [&] { return attempt.connected.has_value(); }));
  CHECK(attempt.connected->ok());
}

TEST_CASE("a refused connection or an invalid address is reported in one line, in a later event") {
  Loop loop;
  const Socket closed = refusing();
  Attempt refused(loop, "127.0.0.1", port_of(closed));
  Attempt no_address(loop, "localhost", 1);
  CHECK_FALSE(refused.connected);
  CHECK_FALSE(no_address.connected);
  REQUIRE(run_until(loop, [&] { return refused.connected && no_address.connected; }));
  REQUIRE_FALSE(refused.connected->ok());
  CHECK(refused.connected->error().message ==
        "cannot connect to 127.0.0.1:" + std::to_string(port_of(closed)) + ": Connection refused");
  REQUIRE_FALSE(no_address.connected->ok());
  CHECK(no_address.connected->error().message == "localhost:1: not a numeric address");
}

TEST_CASE("a connection that is not made in time is given up") {
  // The kernel completes no more connections than the backlog holds.
  Loop loop;
  const auto listener = os::listen_tcp("127.0.0.1", 0, 0);
  REQUIRE(listener.ok());
  const std::uint16_t port = port_of(*listener);
  std::vector<Socket> waiting;
  for (int i = 0; i < 4; ++i) {
    auto socket = os::connect_tcp("127.0.0.1", port);
    REQUIRE(socket.ok());
    waiting.push_back(std::move(*socket));
  }
  Attempt attempt(loop, "127.0.0.1", port, {.limit = 10ms});
  REQUIRE(run_until(loop, [&] { return attempt.connected.has_value(); }));
  REQUIRE_FALSE(attempt.connected->ok());
  CHECK(attempt.connected->error().message ==
        "cannot connect to 127.0.0.1:" + std::to_string(port) + ": no answer");
}

TEST_CASE("a connector that is destroyed delivers nothing") {
  Loop loop;
  const Socket listener = listening();
  auto attempt = std::make_unique<Attempt>(loop, "127.0.0.1", port_of(listener));
  attempt->connector.reset();
  run_ticks(loop, 5);
  CHECK_FALSE(attempt->connected);
}

TEST_CASE("without a free descriptor a connection fails") {
  Loop loop;
  const Socket listener = listening();
  const std::uint16_t port = port_of(listener);
  run_ticks(loop);
  const NoDescriptors none;
  Attempt attempt(loop, "127.0.0.1", port);
  REQUIRE(run_until(loop, [&] { return attempt.connected.has_value(); }));
  REQUIRE_FALSE(attempt.connected->ok());
  CHECK(attempt.connected->error().message.find("Too many open files") != std::string::npos);
}

TEST_CASE("a channel hands over its socket, which stays open and is not watched") {
  Loop loop;
  struct Count final : loop::ChannelOwner {
    int ready = 0;
    void on_ready(loop::Readiness) override { ++ready; }
  } count;
  auto [here, there] = connected_pair();
  auto channel = loop::open_channel(loop, std::move(here), {});
  channel->set_owner(count);
  channel->want(true, true);
  const Socket socket = channel->release_connection().socket;
  CHECK(socket);
  write_all(there, "x");
  run_ticks(loop, 5);
  CHECK(count.ready == 0);
  // Another channel may watch it, both before and after the first is destroyed.
  auto other = loop::open_channel(loop, Socket(::dup(socket.descriptor())), {});
  REQUIRE(other != nullptr);
  other->set_owner(count);
  other->want(true, false);
  channel.reset();
  CHECK(run_until(loop, [&] { return count.ready > 0; }));
  CHECK(read_some(socket) == "x");
}

}  // namespace tubed::loop_test
