// Connections of proxies until their header has arrived.
#include "loop/proxy_headers.h"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "loop/channel.h"
#include "tests/loop/loopback.h"

namespace tubed::loop_test {

using loop::ProxiedClient;
using loop::ProxyHeaders;
using os::Socket;

namespace {

const std::string kLine = "PROXY TCP4 192.0.2.1 192.0.2.2 50312 11300\r\n";
const std::string kLocal("\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00", 16);
// The address with which begin() is called.
const std::string kPeer = "10.0.0.9:1";

struct ProxiedServer final : loop::ProxyOwner {
  ProxiedServer() { headers.set_limits({.timeout = 2 * kLastResort}); }

  void on_proxied(Socket socket, ProxiedClient its_client) override {
    done = std::move(socket);
    client = std::move(its_client);
  }
  void on_header_failed(const std::string& peer, std::string_view reason) override {
    CHECK(peer == kPeer);
    failures.emplace_back(reason);
  }

  // Returns the proxy's end of a new connection.
  Socket connect() {
    auto [mine, other] = connected_pair();
    REQUIRE(headers.begin(std::move(mine), kPeer, *this));
    return std::move(other);
  }
  bool run_until_done() {
    return run_until(loop, [&] { return bool(done) || !failures.empty(); }) && done;
  }
  // Returns why the connection of `proxy` was closed.
  std::string failure_of(const Socket& proxy) {
    REQUIRE(run_until(loop, [&] { return bool(done) || !failures.empty(); }));
    REQUIRE_FALSE(done);
    CHECK(headers.pending() == 0);
    CHECK(os::has_ended(proxy));
    return failures.back();
  }

  loop::Loop loop;
  ProxyHeaders headers{loop};
  Socket done;
  ProxiedClient client;
  std::vector<std::string> failures;
};

}  // namespace

TEST_CASE("the bytes after a header belong to the client") {
  for (const std::string& header : {kLine, kLocal}) {
    ProxiedServer server;
    const Socket proxy = server.connect();
    write_all(proxy, header + "stats\r\n" + header);
    REQUIRE(server.run_until_done());
    CHECK(server.client.address == (header == kLine ? "192.0.2.1:50312" : ""));
    CHECK(read_some(server.done) == "stats\r\n" + header);
    CHECK(server.headers.pending() == 0);
  }
}

TEST_CASE("a header arrives byte by byte") {
  for (const std::string& header : {kLine, kLocal}) {
    ProxiedServer server;
    const Socket proxy = server.connect();
    for (const char byte : header) {
      CHECK_FALSE(server.done);
      CHECK(server.headers.pending() == 1);
      write_all(proxy, std::string(1, byte));
      run_ticks(server.loop, 3);
    }
    REQUIRE(server.run_until_done());
    CHECK(read_some(server.done).empty());
    CHECK(server.failures.empty());
  }
}

TEST_CASE("the longest header arrives in pieces of any size") {
  constexpr std::size_t kRest = loop::kMaxProxyHeader - 16;
  std::string header = kLocal.substr(0, 14) + static_cast<char>(kRest >> 8) +
                       static_cast<char>(kRest & 0xff) + std::string(kRest, '\r');
  for (const std::size_t piece : std::to_array<std::size_t>({1, 7, 107, 108, 4111})) {
    ProxiedServer server;
    const Socket proxy = server.connect();
    for (std::size_t sent = 0; sent < header.size(); sent += piece) {
      write_all(proxy, header.substr(sent, piece));
      if (sent % 64 < piece) run_ticks(server.loop, 2);
    }
    write_all(proxy, "x");
    REQUIRE(server.run_until_done());
    CHECK(read_some(server.done) == "x");
  }
}

TEST_CASE("a malformed header closes the connection") {
  ProxiedServer server;
  const Socket proxy = server.connect();
  write_all(proxy, "PROXY TCP4 ");
  run_ticks(server.loop, 3);
  CHECK(server.headers.pending() == 1);
  write_all(proxy, "nonsense\r\n");
  CHECK(server.failure_of(proxy) == "malformed PROXY line");
}

TEST_CASE("a client without a header is refused at its first byte") {
  ProxiedServer server;
  const Socket proxy = server.connect();
  write_all(proxy, "s");
  CHECK(server.failure_of(proxy) == "no PROXY header");
}

TEST_CASE("a connection that ends before its header is closed") {
  for (const char* sent : {"", "PROXY TCP4 "}) {
    for (const bool whole : {false, true}) {
      ProxiedServer server;
      Socket proxy = server.connect();
      write_all(proxy, sent);
      run_ticks(server.loop, 3);
      if (whole) {
        proxy = Socket();
      } else {
        half_close(proxy);
      }
      REQUIRE(run_until(server.loop, [&] { return !server.failures.empty(); }));
      CHECK(server.failures.back() == "the connection was closed before the PROXY header");
      CHECK(server.headers.pending() == 0);
    }
  }
}

// As a health check does.
TEST_CASE("a header counts although the connection has ended after it, also by a reset") {
  for (const bool resets : {false, true}) {
    ProxiedServer server;
    const Socket listener = listening();
    Socket proxy = connect_to(os::local_address(listener));
    Socket accepted;
    REQUIRE(run_until(server.loop, [&] { return bool(accepted = os::accept_from(listener)); }));
    write_all(proxy, kLine);
    if (resets) {
      reset(std::move(proxy));
    } else {
      proxy = Socket();
    }
    REQUIRE(run_until(server.loop, [&] { return os::has_ended(accepted); }));
    REQUIRE(server.headers.begin(std::move(accepted), kPeer, server));
    REQUIRE(server.run_until_done());
    CHECK(server.client.address == "192.0.2.1:50312");
  }
}

TEST_CASE("a reset in the middle of a header closes the connection") {
  ProxiedServer server;
  const Socket listener = listening();
  Socket proxy = connect_to(os::local_address(listener));
  Socket accepted;
  REQUIRE(run_until(server.loop, [&] { return bool(accepted = os::accept_from(listener)); }));
  REQUIRE(server.headers.begin(std::move(accepted), kPeer, server));
  write_all(proxy, "PROXY ");
  run_ticks(server.loop, 3);
  reset(std::move(proxy));
  REQUIRE(run_until(server.loop, [&] { return !server.failures.empty(); }));
  CHECK(server.failures.back() == "the connection was closed before the PROXY header");
}

TEST_CASE("a header that does not arrive in time closes the connection") {
  ProxiedServer server;
  const Socket silent = server.connect();
  const Socket slow = server.connect();
  write_all(slow, "PROXY");
  run_ticks(server.loop, 3);
  CHECK(server.headers.pending() == 2);
  // The limit applies to connections under way.
  server.headers.set_limits({.timeout = std::chrono::milliseconds(1)});
  REQUIRE(run_until(server.loop, [&] { return server.failures.size() == 2; }));
  CHECK(server.failures == std::vector<std::string>(2, "the PROXY header has taken too long"));
  CHECK(os::has_ended(silent));
  CHECK(os::has_ended(slow));
}

TEST_CASE("the oldest connection is closed if too many wait for their header") {
  ProxiedServer server;
  server.headers.set_limits({.timeout = 2 * kLastResort, .pending = 2});
  const Socket first = server.connect();
  const Socket second = server.connect();
  CHECK_FALSE(os::has_ended(first));
  const Socket third = server.connect();
  CHECK(server.failures == std::vector<std::string>{"too many PROXY headers at once"});
  CHECK(os::has_ended(first));
  CHECK_FALSE(os::has_ended(second));
  write_all(second, kLine);
  REQUIRE(run_until(server.loop, [&] { return bool(server.done); }));
  CHECK(server.headers.pending() == 1);
}

TEST_CASE("an owner that goes closes its connections and no others") {
  ProxiedServer server;
  Socket closed;
  {
    struct Other final : loop::ProxyOwner {
      void on_proxied(Socket, ProxiedClient) override { FAIL("it has no header"); }
      void on_header_failed(const std::string&, std::string_view) override {
        FAIL("it is forgotten");
      }
    } other;
    auto [mine, theirs] = connected_pair();
    REQUIRE(server.headers.begin(std::move(mine), "?", other));
    closed = std::move(theirs);
    const Socket kept = server.connect();
    server.headers.forget(other);
    CHECK(os::has_ended(closed));
    CHECK_FALSE(os::has_ended(kept));
    CHECK(server.headers.pending() == 1);
    server.headers.forget(server);
    CHECK(os::has_ended(kept));
  }
  run_ticks(server.loop, 3);
  CHECK(server.failures.empty());
}

TEST_CASE("a channel has the address and the name that the proxy has reported, or its own") {
  loop::Loop loop;
  auto [proxied, other] = connected_pair();
  const auto channel = loop::open_channel(loop, std::move(proxied), {},
                                          {.address = "192.0.2.1:50312", .tls_name = "ada"});
  CHECK(channel->peer() == "192.0.2.1:50312");
  CHECK(channel->tls_name() == "ada");
  const auto own = loop::open_channel(loop, std::move(other), {}, {});
  CHECK(own->peer().starts_with("unix uid "));
  CHECK(own->tls_name().empty());
}

}  // namespace tubed::loop_test
