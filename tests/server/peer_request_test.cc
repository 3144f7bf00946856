#include "node/peer_request.h"

#include <optional>

#include "tests/server/peer_node.h"

namespace tubed::server_test {

using cluster::Purpose;
using cluster::Request;
using cluster::Response;
using cluster::WelcomeStatus;
using loop_test::run_ticks;
using loop_test::run_until;

namespace {

const Request kRequest = {.path = "/cluster/add", .body = R"({"name":"c"})"};

// A request from `from`, and its result.
struct Sent {
  Sent(PeerNode& from, const std::string& address, const Request& request = kRequest) {
    from.links->request(address, request, [this, &from](Result<Response> got) {
      CHECK(std::exchange(from.in_tick, false));
      result.emplace(std::move(got));
    });
    CHECK_FALSE(result);
  }
  std::string error(loop::Loop& loop) {
    if (!run_until(loop, [this] { return result.has_value(); }) || result->ok()) return "";
    return result->error().message;
  }

  std::optional<Result<Response>> result;
};

struct TwoNodes {
  explicit TwoNodes(const node::PeerLimits& limits = kLongLimits)
      : a(loop, 1, limits), b(loop, 2, limits) {
    join({&a, &b});
  }

  loop::Loop loop;
  PeerNode a;
  PeerNode b;
};

}  // namespace

TEST_CASE("a request is answered at once or later") {
  TwoNodes nodes;
  auto& loop = nodes.loop;
  auto& a = nodes.a;
  auto& b = nodes.b;
  Sent later(a, b.facts.address);
  REQUIRE(run_until(loop, [&] { return b.requests.size() == 1; }));
  CHECK(b.requests.front().first == kRequest);
  b.then = [&] { b.requests.back().second(Response{.status = 200, .body = "{}"}); };
  Sent at_once(a, b.facts.address);
  REQUIRE(run_until(loop, [&] { return at_once.result.has_value(); }));
  CHECK(at_once.result->value() == Response{.status = 200, .body = "{}"});
  CHECK_FALSE(later.result);
  b.requests.front().second(Response{.status = 404, .body = "no"});
  REQUIRE(run_until(loop, [&] { return later.result.has_value(); }));
  CHECK(later.result->value() == Response{.status = 404, .body = "no"});
  // The connections are closed by now: a reply does nothing.
  run_ticks(loop, 5);
  b.requests.front().second(Response{});
  b.links.reset();
  b.requests.front().second(Response{});
}

TEST_CASE("a request with the longest texts passes, and longer ones are an error") {
  TwoNodes nodes;
  auto& loop = nodes.loop;
  auto& a = nodes.a;
  auto& b = nodes.b;
  const std::string longest(cluster::kMostControlText, 'x');
  b.then = [&] { b.requests.back().second(Response{.body = longest}); };
  Sent sent(a, b.facts.address, {.path = longest, .body = longest});
  REQUIRE(run_until(loop, [&] { return sent.result.has_value(); }));
  REQUIRE(sent.result->ok());
  CHECK(sent.result->value().body == longest);
  CHECK(b.requests.back().first == Request{.path = longest, .body = longest});
  Sent longer(a, b.facts.address, {.path = "/", .body = longest + "x"});
  CHECK(longer.error(loop) == "request to " + b.facts.address + ": the request is too long");
  b.then = [&] { b.requests.back().second(Response{.body = longest + "x"}); };
  Sent long_answer(a, b.facts.address);
  REQUIRE(run_until(loop, [&] { return long_answer.result.has_value(); }));
  CHECK(long_answer.result->value().status == 500);
}

TEST_CASE("a request that is not answered in time is an error at both ends") {
  node::PeerLimits limits = kLongLimits;
  limits.request = 30ms;
  TwoNodes nodes(limits);
  auto& loop = nodes.loop;
  auto& a = nodes.a;
  auto& b = nodes.b;
  Sent sent(a, b.facts.address);
  const std::string error = sent.error(loop);
  // On a busy machine the node that answers may be the first that gives up.
  const bool in_time =
      error == "request to " + b.facts.address + ": no answer in time" ||
      error == "request to " + b.facts.address + ": the other node has closed the connection";
  CHECK_MESSAGE(in_time, error);
  RawPeer silent = b.dial();
  silent.send(encode(b.hello(1, Purpose::request)));
  CHECK(run_until(loop, [&] {
    silent.read();
    return silent.ended;
  }));
}

TEST_CASE("a request to no node, to another cluster, or to a node that ends is an error") {
  TwoNodes nodes;
  auto& loop = nodes.loop;
  auto& a = nodes.a;
  auto& b = nodes.b;
  Sent no_address(a, "127.0.0.1:1");
  CHECK(no_address.error(loop) == "request to 127.0.0.1:1: not the address of a node");
  const os::Socket closed = loop_test::refusing();
  const std::string address = os::local_address(closed);
  Sent refused(a, "x@" + address);
  CHECK(refused.error(loop) ==
        "request to x@" + address + ": cannot connect to " + address + ": Connection refused");
  b.facts.cluster = 8;
  b.links->set_facts(b.facts);
  Sent other(a, b.facts.address);
  CHECK(other.error(loop) == "request to " + b.facts.address + ": it is in another cluster");
  b.facts.cluster = kCluster;
  b.links->set_facts(b.facts);
  b.then = [&] { b.requests.back().second(Response{}); };
  Sent ended(a, b.facts.address);
  b.then = [] {};
  REQUIRE(run_until(loop, [&] { return b.requests.size() == 1; }));
  b.links.reset();
  CHECK(ended.error(loop) ==
        "request to " + b.facts.address + ": the other node has closed the connection");
}

TEST_CASE("a request that cannot be read, or a second one, closes its connection") {
  TwoNodes nodes;
  auto& b = nodes.b;
  for (const std::string& bytes : {frame_of(1), encode(kRequest) + encode(kRequest)}) {
    RawPeer peer = b.dial();
    peer.send(encode(b.hello(1, Purpose::request)));
    CHECK(cluster::decode_welcome(peer.take_frame()));
    peer.send(bytes);
    CHECK(peer.is_closed());
  }
  CHECK(b.requests.size() == 1);
}

TEST_CASE("only so many requests are under way, and the next is answered that the node is busy") {
  node::PeerLimits limits = kLongLimits;
  limits.requests = 3;
  TwoNodes nodes(limits);
  auto& loop = nodes.loop;
  auto& a = nodes.a;
  auto& b = nodes.b;
  std::vector<std::unique_ptr<Sent>> sent;
  for (int i = 0; i < 3; ++i) sent.push_back(std::make_unique<Sent>(a, b.facts.address));
  REQUIRE(run_until(loop, [&] { return b.requests.size() == 3; }));
  Sent next(a, b.facts.address);
  CHECK(next.error(loop) == "request to " + b.facts.address + ": it is busy");
  b.requests.front().second(Response{});
  REQUIRE(run_until(loop, [&] { return sent.front()->result.has_value(); }));
  run_ticks(loop, 5);
  Sent again(a, b.facts.address);
  CHECK(run_until(loop, [&] { return b.requests.size() == 4; }));
}

TEST_CASE("a node that ends does not call back for its requests") {
  TwoNodes nodes;
  auto& loop = nodes.loop;
  auto& a = nodes.a;
  auto& b = nodes.b;
  const Sent sent(a, b.facts.address);
  REQUIRE(run_until(loop, [&] { return b.requests.size() == 1; }));
  a.links.reset();
  b.requests.front().second(Response{});
  run_ticks(loop, 5);
  CHECK_FALSE(sent.result);
}

}  // namespace tubed::server_test
