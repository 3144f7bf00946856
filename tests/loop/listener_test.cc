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

struct TestListenerOwner final : loop::ListenerOwner {
  std::vector<os::Socket> connections;
  std::vector<std::string> reasons;
  std::uint64_t refused = 0;

  void on_connection(os::Socket socket) override { connections.push_back(std::move(socket)); }
  void on_accept_error(const std::string& reason, std::uint64_t count) override {
    reasons.push_back(reason);
    refused += count;
  }
};

std::vector<os::Socket> connect_clients(const Listener& listener, int count) {
  std::vector<os::Socket> clients;
  for (int i = 0; i < count; ++i) {
    clients.push_back(connect_to(os::local_address(listener.socket())));
    REQUIRE(clients.back());
  }
  return clients;
}

}  // namespace

TEST_CASE("accepted connections are handed to the owner") {
  Loop loop;
  TestListenerOwner owner;
  const Listener listener(loop, listening(), "", "FULL", owner);
  const auto clients = connect_clients(listener, 3);
  REQUIRE(run_until(loop, [&] { return owner.connections.size() == 3; }));
  write_all(clients[0], "hello");
  CHECK(read_exactly(owner.connections[0], 5) == "hello");
  CHECK(owner.reasons.empty());
}

TEST_CASE("many connections are accepted in several ticks") {
  Loop loop;
  TestListenerOwner owner;
  const Listener listener(loop, listening(), "", "FULL", owner);
  const auto clients = connect_clients(listener, 100);
  run_ticks(loop);
  CHECK(owner.connections.size() == 64);
  CHECK(run_until(loop, [&] { return owner.connections.size() == 100; }));
}

TEST_CASE("without a descriptor connections are refused, and accepted again later") {
  Loop loop;
  TestListenerOwner owner;
  const Listener listener(loop, listening(), "", "FULL", owner);
  const auto clients = connect_clients(listener, 100);
  {
    const NoDescriptors none;
    REQUIRE(run_until(loop, [&] { return owner.refused == 100; }));
  }
  CHECK(owner.connections.empty());
  CHECK(owner.reasons.size() == 2);  // two ticks
  CHECK(owner.reasons.front() == "Too many open files");
  for (const os::Socket& client : clients) CHECK(read_to_end(client) == "FULL\r\n");
  const auto later = connect_clients(listener, 1);
  CHECK(run_until(loop, [&] { return owner.connections.size() == 1; }));
}

TEST_CASE("without even a spare descriptor the listener pauses instead of spinning") {
  Loop loop;
  TestListenerOwner owner;
  os::Socket socket = listening();
  std::vector<os::Socket> clients;
  clients.push_back(connect_to(os::local_address(socket)));
  run_ticks(loop);
  auto none = std::make_unique<NoDescriptors>();
  const Listener listener(loop, std::move(socket), "", "FULL", owner);
  uv_update_time(loop.uv());
  const std::uint64_t begin = uv_now(loop.uv());  // in ms
  REQUIRE(run_until(loop, [&] { return !owner.reasons.empty(); }));
  run_ticks(loop, 1000);
  // Each report except the first follows a pause. A spinning listener would report in each tick.
  const std::uint64_t pauses = owner.reasons.size() - 1;
  CHECK(uv_now(loop.uv()) - begin >= pauses * 100);
  CHECK(owner.refused == 0);
  none.reset();
  CHECK(run_until(loop, [&] { return owner.connections.size() == 1; }));
}

TEST_CASE("the path of a unix socket is removed with its listener") {
  const Directory directory;
  const std::string path = directory.file("socket");
  Loop loop;
  TestListenerOwner owner;
  {
    auto socket = os::listen_unix(path, {}, 16);
    REQUIRE(socket.ok());
    const Listener listener(loop, std::move(*socket), path, "FULL", owner);
    const auto clients = connect_clients(listener, 1);
    CHECK(run_until(loop, [&] { return owner.connections.size() == 1; }));
  }
  CHECK_FALSE(std::filesystem::exists(path));
}

}  // namespace tubed::loop_test
