// HTTP over real descriptors: the loop sees them ready, and bytes pass in both directions.
#include "tests/simulation/bridges.h"

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "loop/http_server.h"
#include "loop/loop.h"
#include "os/socket.h"
#include "tests/simulation/machine.h"
#include "tests/simulation/net.h"
#include "tests/simulation/world.h"

namespace tubed::simulation {

using namespace std::chrono_literals;

namespace {

struct Site final : loop::HttpOwner {
  loop::HttpReply respond(const loop::HttpRequest& request) override {
    return loop::HttpResponse{.text = std::string(request.path())};
  }
  void on_http_error(const std::string&) override {}
  void on_handshake_failed(const std::string&, std::string_view) override {}
};

struct HttpFixture {
  HttpFixture() {
    auto socket = os::listen_tcp("127.0.0.1", Net::kHttpPort, 9);
    http.listen(std::move(*socket), "");
  }

  // Returns everything that arrives in this time.
  std::string take_for(Duration time, Endpoint& client) {
    std::string answer;
    client.on_event([&] {
      answer.append(client.arrived());
      client.take(client.arrived().size());
    });
    world.after(time, [this] { loop.stop(); });
    loop.run();
    return answer;
  }

  World world{3};
  Net net{world};
  Machine machine{world};
  Site site;
  loop::Loop loop;
  loop::HttpServer http{loop, site};
};

}  // namespace

TEST_CASE("libmicrohttpd answers a request of the simulated network") {
  HttpFixture fixture;
  const auto client = fixture.net.connect(Net::kHttpPort, {.cuts = 90}, {.cuts = 90});
  REQUIRE(client != nullptr);
  client->send("GET /path HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string answer = fixture.take_for(20ms, *client);
  CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(answer.ends_with("\r\n\r\n/path"));
  CHECK(client->ended());
  CHECK_FALSE(client->lost());
}

TEST_CASE("the timeouts of libmicrohttpd run on virtual time") {
  HttpFixture fixture;
  const auto client = fixture.net.connect(Net::kHttpPort, {}, {});
  REQUIRE(client != nullptr);
  client->send("GET / HTTP/1.1\r\n");
  CHECK(fixture.take_for(9s, *client).empty());
  CHECK_FALSE(client->ended());
  fixture.take_for(3s, *client);
  CHECK(client->ended());
}

TEST_CASE("a reset and the end of a process reach the other end of a bridge") {
  World world{3};
  Net net{world};
  Bridges bridges;
  const auto make = [&] { return Endpoint::connect(world, 1, {}, {}); };
  char byte = 0;
  auto [reset_server, reset_client] = make();
  const int first = bridges.add(reset_server);
  reset_client->reset();
  bridges.pump();
  CHECK(::recv(first, &byte, 1, MSG_DONTWAIT) <= 0);
  auto [ended_server, ended_client] = make();
  const int second = bridges.add(ended_server);
  bridges.reset_all();
  CHECK(ended_client->lost());
  CHECK(bridges.count() == 0);
  ::close(first);
  ::close(second);
}

TEST_CASE("a half-closed client gets the bytes that follow") {
  World world{3};
  Net net{world};
  Bridges bridges;
  auto [server, client] = Endpoint::connect(world, 1, {}, {});
  const int process = bridges.add(server);
  client->send("last");
  client->end_output();
  world.pass(1s);
  world.run_due();
  bridges.pump();
  std::array<char, 16> bytes;
  CHECK(::recv(process, bytes.data(), bytes.size(), MSG_DONTWAIT) == 4);
  CHECK(::recv(process, bytes.data(), bytes.size(), MSG_DONTWAIT) == 0);
  REQUIRE(::send(process, "answer", 6, MSG_NOSIGNAL) == 6);
  bridges.pump();
  ::close(process);
  bridges.pump();
  world.pass(1s);
  world.run_due();
  CHECK(client->arrived() == "answer");
  CHECK(client->ended());
  CHECK(bridges.count() == 0);
}

}  // namespace tubed::simulation
