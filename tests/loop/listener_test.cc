#include "loop/listener.h"

#include <filesystem>
#include <vector>

#include <doctest/doctest.h>

#include "tests/loop/loopback.h"

namespace tubed::loop_test {

using loop::Listener;
using loop::Loop;
using os::Socket;

namespace {

struct Door final : loop::ListenerOwner {
  std::vector<os::Socket> connections;
  std::vector<std::string> reasons;
  std::uint64_t refused = 0;

  void on_connection(os::Socket socket) override { connections.push_back(std::move(socket)); }
  void on_accept_trouble(const std::string& reason, std::uint64_t how_many) override {
    reasons.push_back(reason);
    refused += how_many;
  }
};

std::vector<os::Socket> crowd_at(const Listener& listener, int count) {
  std::vector<os::Socket> clients;
  for (int i = 0; i < count; ++i) {
    clients.push_back(connect_to(os::local_address(listener.socket())));
    REQUIRE(clients.back());
  }
  return clients;
}

}  // namespace

TEST_CASE("connections are handed on") {
  Loop loop;
  Door door;
  const Listener listener(loop, listening(), "", "FULL", door);
  const auto clients = crowd_at(listener, 3);
  REQUIRE(run_until(loop, [&] { return door.connections.size() == 3; }));
  write_all(clients[0], "hello");
  CHECK(read_exactly(door.connections[0], 5) == "hello");
  CHECK(door.reasons.empty());
}

TEST_CASE("a crowd comes in over several turns") {
  Loop loop;
  Door door;
  const Listener listener(loop, listening(), "", "FULL", door);
  const auto clients = crowd_at(listener, 100);
  turn(loop);
  CHECK(door.connections.size() == 64);
  CHECK(run_until(loop, [&] { return door.connections.size() == 100; }));
}

TEST_CASE("without a descriptor connections are refused, and taken again later") {
  Loop loop;
  Door door;
  const Listener listener(loop, listening(), "", "FULL", door);
  const auto clients = crowd_at(listener, 100);
  {
    const NoDescriptors none;
    REQUIRE(run_until(loop, [&] { return door.refused == 100; }));
  }
  CHECK(door.connections.empty());
  CHECK(door.reasons.size() == 2);  // two turns
  CHECK(door.reasons.front() == "Too many open files");
  for (const os::Socket& client : clients) CHECK(read_to_end(client) == "FULL\r\n");
  const auto later = crowd_at(listener, 1);
  CHECK(run_until(loop, [&] { return door.connections.size() == 1; }));
}

TEST_CASE("without even a spare descriptor it looks away instead of spinning") {
  Loop loop;
  Door door;
  os::Socket socket = listening();
  std::vector<os::Socket> clients;
  clients.push_back(connect_to(os::local_address(socket)));
  turn(loop);
  auto none = std::make_unique<NoDescriptors>();
  const Listener listener(loop, std::move(socket), "", "FULL", door);
  REQUIRE(run_until(loop, [&] { return !door.reasons.empty(); }));
  const std::uint64_t begin = uv_hrtime();
  int turns = 0;
  while (uv_hrtime() - begin < 50'000'000) {
    turn(loop);
    ++turns;
  }
  CHECK(turns > 10);
  CHECK(door.reasons.size() == 1);
  CHECK(door.refused == 0);
  none.reset();
  CHECK(run_until(loop, [&] { return door.connections.size() == 1; }));
}

TEST_CASE("the path of a unix socket goes with its listener") {
  const Directory directory;
  const std::string path = directory.file("socket");
  Loop loop;
  Door door;
  {
    auto socket = os::listen_unix(path, {}, 16);
    REQUIRE(socket.ok());
    const Listener listener(loop, std::move(*socket), path, "FULL", door);
    const auto clients = crowd_at(listener, 1);
    CHECK(run_until(loop, [&] { return door.connections.size() == 1; }));
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

}  // namespace tubed::loop_test
