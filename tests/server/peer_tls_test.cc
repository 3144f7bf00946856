// TLS between nodes (cluster.tls): certificates that fit and that do not, proofs of the secret that
// are bound to a session, and what is carried over it.
#include <algorithm>

#include <sys/socket.h>

#include "node/byte_pipe.h"
#include "node/peer_handshake.h"
#include "tests/loop/tls_peer.h"
#include "tests/server/peer_node.h"

namespace tubed::server_test {

using cluster::Purpose;
using cluster::WelcomeStatus;
using loop_test::run_ticks;
using loop_test::run_until;
using loop_test::TestAuthority;
using node::CalleeHandshake;
using node::CallerHandshake;
using node::NodeTls;
using node::PeerSecurity;

namespace {

struct Authorities {
  loop_test::Directory directory;
  TestAuthority one{directory, "one"};
  TestAuthority two{directory, "two"};
};

NodeTls tls_of(const loop_test::CertificateFiles& files, const std::string& ca) {
  loop::TlsOptions options;
  options.certificates.push_back({files.certificate, files.key});
  options.client_ca = ca;
  options.mutual = true;
  return loop::TlsContext::load(options).value();
}

NodeTls tls_of(const TestAuthority& authority, const std::string& name) {
  return tls_of(authority.sign(name), authority.file);
}

node::ClusterSecrets a_secret() {
  return node::ClusterSecrets::parse("tbc_" + std::string(42, 'a') + "A\n", "secret").value();
}

// Nodes a and b, which dial each other.
struct TlsNodes {
  TlsNodes(const NodeTls& of_a, const NodeTls& of_b) {
    a.links->set_tls(of_a);
    b.links->set_tls(of_b);
    join({&a, &b});
  }
  bool logs(const PeerNode& node, std::string_view text) {
    return run_until(loop, [&] { return node.has_logged(text); });
  }

  loop::Loop loop;
  PeerNode a{loop, 1, kQuick};
  PeerNode b{loop, 2, kQuick};
};

long lines_with(const PeerNode& node, std::string_view text) {
  return std::ranges::count_if(
      node.lines, [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

const cluster::Hello kFromA{.purpose = Purpose::frames,
                            .cluster = kCluster,
                            .from = 1,
                            .to = 2,
                            .address = "a@127.0.0.1:1",
                            .name = "b"};

}  // namespace

TEST_CASE("nodes with certificates of one authority send messages of all lengths") {
  const Authorities authorities;
  for (const bool with_secret : {false, true}) {
    TlsNodes two(tls_of(authorities.one, "a"), tls_of(authorities.one, "b"));
    if (with_secret) {
      two.a.links->set_secrets(a_secret());
      two.b.links->set_secrets(a_secret());
    }
    REQUIRE(all_connected({&two.a, &two.b}));
    const std::vector<std::size_t> lengths{0, 100, 16'384, 1'000'000, 5, 3'000'000};
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      two.a.links->send(2, frame_of(i + 1, lengths[i]));
      two.b.links->send(1, frame_of(i + 1, lengths[i]));
    }
    for (const PeerNode* node : {&two.a, &two.b}) {
      REQUIRE(run_until(two.loop, [&] { return node->frames.size() == lengths.size(); }));
      for (std::size_t i = 0; i < lengths.size(); ++i)
        CHECK(index_of(node->frames[i].second, lengths[i]) == i + 1);
    }
  }
}

TEST_CASE("a request is answered over TLS") {
  const Authorities authorities;
  TlsNodes two(tls_of(authorities.one, "a"), tls_of(authorities.one, "b"));
  std::string answer;
  two.a.links->request(two.b.facts.address, {.path = "/cluster/add", .body = "{}"},
                       [&](Result<cluster::Response> response) {
                         answer = response ? response->body : response.error().message;
                       });
  REQUIRE(run_until(two.loop, [&] { return !two.b.requests.empty(); }));
  two.b.requests.front().second({.status = 200, .body = "done"});
  REQUIRE(run_until(two.loop, [&] { return !answer.empty(); }));
  CHECK(answer == "done");
}

TEST_CASE("a client is passed on over TLS, with the end of its output and of the other's") {
  const Authorities authorities;
  TlsNodes two(tls_of(authorities.one, "a"), tls_of(authorities.one, "b"));
  auto [client_end, here] = loop_test::connected_pair();
  RawPeer client{.loop = two.loop, .socket = std::move(here)};
  std::optional<node::BytePipe> pipe;
  bool ended = false;
  node::PeerDial dial(two.loop, cluster::parse_member_address(two.a.facts.address).value(),
                      two.b.links->begin_client(two.a.member(), {.address = "192.0.2.1:5"}),
                      {.limit = 1h}, [&, end = &client_end](Result<node::PeerDial::Answer> result) {
                        REQUIRE(result.ok());
                        auto released = result->channel->release();
                        REQUIRE(released.connection.tls);
                        pipe.emplace(
                            two.loop, loop::open_channel(two.loop, std::move(*end), {}),
                            loop::open_channel(two.loop, std::move(released.connection), {}),
                            std::move(released.read_ahead), 1h,
                            [&](node::BytePipe::End) { ended = true; });
                      });
  REQUIRE(run_until(two.loop, [&] { return pipe && !two.a.clients.empty(); }));
  auto [hello, connection] = std::move(two.a.clients.front());
  CHECK(hello.client.address == "192.0.2.1:5");
  // The leader.
  auto channel = loop::open_channel(two.loop, std::move(connection), {},
                                    {.address = "192.0.2.1:5", .tls_name = {}});
  REQUIRE(channel != nullptr);
  CHECK(channel->peer() == "192.0.2.1:5");
  struct Owner final : loop::ChannelOwner {
    void on_ready(loop::Readiness) override {}
  } owner;
  channel->set_owner(owner);
  const std::string sent(200'000, 's');
  std::size_t written = 0;
  std::string got;
  bool server_ended = false;
  REQUIRE(run_until(two.loop, [&] {
    const std::string_view rest = std::string_view(sent).substr(written);
    if (const auto moved = os::write_from(client.socket, rest);
        !rest.empty() && moved.kind == os::Transfer::Kind::done) {
      written += moved.bytes;
      if (written == sent.size()) loop_test::half_close(client.socket);
    }
    std::array<char, 65536> buffer;
    const auto read = channel->read(std::span(buffer));
    if (read.kind == os::Transfer::Kind::done) got.append(buffer.data(), read.bytes);
    server_ended |= read.kind == os::Transfer::Kind::end;
    return server_ended;
  }));
  CHECK(got == sent);
  std::string_view reply = sent;
  REQUIRE(run_until(two.loop, [&] {
    if (!reply.empty()) {
      const auto moved = channel->write(reply);
      if (moved.kind == os::Transfer::Kind::done) reply.remove_prefix(moved.bytes);
      if (reply.empty()) channel->end_output();
    }
    client.read();
    return client.ended || ended;
  }));
  REQUIRE(run_until(two.loop, [&] {
    client.read();
    return client.input.size() == sent.size() && ended;
  }));
}

TEST_CASE("a node answers no caller whose certificate has another name than its hello") {
  const Authorities authorities;
  TlsNodes two(tls_of(authorities.one, "a"), tls_of(authorities.one, "c"));
  const std::string reason = "its certificate (CN=c) has no alternative name DNS:b";
  REQUIRE(run_until(two.loop, [&] {
    return two.a.has_logged("connection of another node refused") || !two.a.hellos.empty();
  }));
  run_ticks(two.loop, 200);
  REQUIRE(two.a.hellos.empty());
  REQUIRE(two.logs(two.a, "connection of another node refused"));
  // It also finds the wrong name when it dials.
  CHECK(lines_with(two.a, reason) <= 2);
  CHECK_FALSE(two.b.links->is_connected(1));
}

TEST_CASE("a node sends nothing to a node whose certificate has another name") {
  const Authorities authorities;
  TlsNodes two(tls_of(authorities.one, "a"), tls_of(authorities.one, "c"));
  REQUIRE(run_until(two.loop, [&] {
    return two.a.has_logged("not connected to another node") || !two.b.hellos.empty();
  }));
  run_ticks(two.loop, 200);
  CHECK(two.b.hellos.empty());
  CHECK(two.a.has_logged("its certificate (CN=c) has no alternative name DNS:b"));
}

TEST_CASE("a certificate belongs to a name, and the name to a member: no other member is played") {
  const Authorities authorities;
  TlsNodes two(tls_of(authorities.one, "a"), tls_of(authorities.one, "b"));
  const auto answer = [&](const std::string& name, cluster::NodeId from) {
    cluster::Hello hello = two.a.hello(from);
    hello.address = name + "@127.0.0.1:1";
    hello.name = "a";
    std::optional<WelcomeStatus> status;
    node::PeerDial dial(two.loop, cluster::parse_member_address(two.a.facts.address).value(),
                        CallerHandshake(PeerSecurity({}, tls_of(authorities.one, name)), hello),
                        {.limit = 1h}, [&](Result<node::PeerDial::Answer> result) {
                          REQUIRE(result.ok());
                          status = result->welcome.status;
                        });
    REQUIRE(run_until(two.loop, [&] { return status.has_value(); }));
    return *status;
  };
  CHECK(answer("b", 2) == WelcomeStatus::ok);
  CHECK(answer("c", 2) == WelcomeStatus::other_node);
  CHECK(answer("a", 2) == WelcomeStatus::other_node);
  // Nor does it teach the address of one.
  for (const auto& [node, stated] : two.a.stated) {
    CHECK(node == 2);
    CHECK(cluster::name_in(stated) == "b");
  }
}

TEST_CASE(
    "a node that was accepted before it is a member has the name of the member, or is closed") {
  const Authorities authorities;
  TlsNodes two(tls_of(authorities.one, "a"), tls_of(authorities.one, "b"));
  two.a.links->set_members({two.a.member()});
  two.b.facts.node = 3;
  two.b.facts.configuration_index = two.a.facts.configuration_index + 1;
  two.b.links->set_facts(two.b.facts);
  two.b.links->set_members({two.a.member(), {.id = 3, .address = two.b.facts.address}});
  REQUIRE(run_until(two.loop, [&] { return two.b.links->is_connected(1); }));
  REQUIRE(!two.a.links->stated_address(3).empty());
  SUBCASE("its name") {
    two.a.links->set_members({two.a.member(), {.id = 3, .address = "b@127.0.0.1:1"}});
    CHECK(!two.a.links->stated_address(3).empty());
  }
  SUBCASE("another name") {
    two.a.links->set_members({two.a.member(), {.id = 3, .address = "c@127.0.0.1:1"}});
    CHECK(two.a.links->stated_address(3).empty());
    CHECK(two.logs(two.a, "another node was not accepted"));
    CHECK_FALSE(two.b.links->is_connected(1));
  }
}

TEST_CASE("a member with a certificate is reached where it says that it listens") {
  const Authorities authorities;
  TlsNodes two(tls_of(authorities.one, "a"), tls_of(authorities.one, "b"));
  two.a.links->set_members({two.a.member(), {.id = 2, .address = "b@127.0.0.1:1"}});
  REQUIRE(run_until(two.loop, [&] { return two.a.links->is_connected(2); }));
  CHECK(two.a.links->learned_address(2) == "127.0.0.1:" + std::to_string(two.b.port()));
}

TEST_CASE("certificates of another authority and expired ones are refused, with the reason") {
  const Authorities authorities;
  const auto& [directory, one, two_ca] = authorities;
  const std::string both = "certificate verify failed";
  {
    TlsNodes two(tls_of(one, "a"), tls_of(two_ca, "b"));
    for (const PeerNode* node : {&two.a, &two.b}) {
      REQUIRE(two.logs(*node, "not connected to another node"));
      REQUIRE(two.logs(*node, "connection of another node refused"));
      CHECK(node->has_logged(both));
      CHECK(node->hellos.empty());
      // Both dial again and again.
      run_ticks(two.loop, 200);
      CHECK(lines_with(*node, "not connected to another node") <= 2);
    }
  }
  // The authority of the other alone, so that only one end refuses.
  {
    TlsNodes two(tls_of(one, "a"), tls_of(one.sign("b"), two_ca.file));
    REQUIRE(two.logs(two.a, "unknown ca"));
    REQUIRE(two.logs(two.b, both));
  }
  {
    TlsNodes two(tls_of(one, "a"), tls_of(one.sign("b", -7200, -3600), one.file));
    REQUIRE(two.logs(two.a, "certificate has expired"));
    CHECK(two.a.hellos.empty());
    CHECK(two.b.hellos.empty());
  }
}

TEST_CASE("a node with TLS and one without log on both sides which setting is missing where") {
  const Authorities authorities;
  for (const bool with_secret : {false, true}) {
    TlsNodes two(tls_of(authorities.one, "a"), nullptr);
    if (with_secret) {
      two.a.links->set_secrets(a_secret());
      two.b.links->set_secrets(a_secret());
    }
    REQUIRE(two.logs(two.a, "it has no cluster.tls, and this node has it"));
    REQUIRE(two.logs(two.a, "this node has cluster.tls, and it may have none"));
    REQUIRE(two.logs(two.b, "it has cluster.tls, and this node has none"));
    REQUIRE(two.logs(two.b, "cluster.tls, this node needs it too"));
    run_ticks(two.loop, 200);
    CHECK(lines_with(two.a, "it has no cluster.tls, and this node has it") == 1);
    CHECK(lines_with(two.b, "it has cluster.tls, and this node has none") == 1);
    CHECK(two.a.hellos.empty());
    CHECK(two.b.hellos.empty());
    // With a certificate it is connected.
    two.b.links->set_tls(tls_of(authorities.one, "b"));
    CHECK(all_connected({&two.a, &two.b}));
  }
}

TEST_CASE("a proof that is passed on between two sessions of TLS is refused, in both directions") {
  const Authorities authorities;
  const NodeTls tls = tls_of(authorities.one, "x");
  const std::string one(32, '1');
  const std::string other(32, '2');
  const auto shake_hands = [&](const std::string& of_caller, const std::string& of_callee) {
    CallerHandshake caller(PeerSecurity(a_secret(), tls), kFromA);
    CalleeHandshake callee(PeerSecurity(a_secret(), tls));
    REQUIRE(caller.check({.subject = "", .names = {"DNS:b"}, .binding = of_caller}).ok());
    callee.set_caller({.subject = "", .names = {"DNS:a"}, .binding = of_callee});
    const auto challenge = callee.take_hello(caller.hello());
    REQUIRE(challenge.ok());
    const auto step = caller.take(*challenge);
    REQUIRE(step.ok());
    return callee.take_proof(step->reply).ok();
  };
  CHECK(shake_hands(one, one));
  CHECK_FALSE(shake_hands(one, other));
  CHECK_FALSE(shake_hands(one, ""));
  // The proof of the callee.
  CallerHandshake caller(PeerSecurity(a_secret(), tls), kFromA);
  CalleeHandshake callee(PeerSecurity(a_secret(), tls));
  REQUIRE(caller.check({.subject = "", .names = {"DNS:b"}, .binding = one}).ok());
  callee.set_caller({.subject = "", .names = {"DNS:a"}, .binding = one});
  const auto step = caller.take(callee.take_hello(caller.hello()).value());
  REQUIRE(callee.take_proof(step.value().reply).ok());
  callee.set_caller({.subject = "", .names = {"DNS:a"}, .binding = other});
  const std::string answer = callee.answer({.status = WelcomeStatus::ok, .name = "b"});
  const std::size_t first = cluster::frame_bytes(answer).value();
  REQUIRE(caller.take(std::string_view(answer).substr(0, first)).ok());
  CHECK_FALSE(caller.take(std::string_view(answer).substr(first)).ok());
}

TEST_CASE("new certificates of the same authorities close nothing, and other authorities do") {
  const Authorities authorities;
  TlsNodes two(tls_of(authorities.one, "a"), tls_of(authorities.one, "b"));
  REQUIRE(all_connected({&two.a, &two.b}));
  const auto hellos = [&] { return two.a.hellos.size() + two.b.hellos.size(); };
  const std::size_t before = hellos();
  two.a.links->set_tls(tls_of(authorities.one, "a"));
  two.b.links->set_tls(tls_of(authorities.one, "b"));
  run_ticks(two.loop, 20);
  CHECK(hellos() == before);
  CHECK(two.a.links->is_connected(2));
  // An authority is replaced node by node.
  two.a.links->set_tls(tls_of(authorities.two, "a"));
  CHECK_FALSE(two.a.links->is_connected(2));
  two.b.links->set_tls(tls_of(authorities.two, "b"));
  REQUIRE(all_connected({&two.a, &two.b}));
  // TLS ends.
  two.a.links->set_tls(nullptr);
  CHECK_FALSE(two.a.links->is_connected(2));
  two.b.links->set_tls(nullptr);
  REQUIRE(all_connected({&two.a, &two.b}));
}

TEST_CASE("a caller that has given up when its handshake of TLS ends is not answered") {
  const Authorities authorities;
  loop::Loop loop;
  for (const Purpose purpose : {Purpose::frames, Purpose::fetch}) {
    for (const bool gives_up : {false, true}) {
      PeerNode a(loop, 1);
      a.links->set_tls(tls_of(authorities.one, "a"));
      a.links->set_members({a.member(), {.id = 2, .address = "x@127.0.0.1:1"}});
      loop_test::TlsPeerClient caller(loop_test::connect_to(a.links->address()), TLS1_3_VERSION);
      caller.present(authorities.one.sign("x"));
      REQUIRE(run_until(loop, [&] { return caller.shake_hands() || caller.failed(); }));
      REQUIRE_FALSE(caller.failed());
      // The node has not seen the last part of the handshake.
      const std::string hello = encode(a.hello(2, purpose));
      REQUIRE(caller.send(hello) == hello.size());
      if (gives_up) loop_test::half_close(caller.socket());
      REQUIRE(run_until(loop, [&] {
        return caller.receive() || caller.failed() || !caller.input().empty() || !a.hellos.empty();
      }));
      CHECK(a.hellos.empty() == gives_up);
      CHECK(a.fetches.empty() == (gives_up || purpose != Purpose::fetch));
    }
  }
}

TEST_CASE("a handshake of TLS gets no more time and no more bytes than it needs") {
  const Authorities authorities;
  loop::Loop loop;
  node::PeerLimits limits = kQuick;
  limits.hello = 20ms;
  PeerNode quick(loop, 1, limits);
  quick.links->set_tls(tls_of(authorities.one, "a"));
  RawPeer silent = quick.dial();
  CHECK(silent.is_closed());
  CHECK(quick.has_logged("connection of another node refused"));
  PeerNode a(loop, 1);
  a.links->set_tls(tls_of(authorities.one, "a"));
  // Half of a ClientHello, in records of 16 KiB.
  RawPeer peer = a.dial();
  const std::string record = std::string("\x16\x03\x01\x40\x00", 5);
  const std::string begin = std::string("\x01\x01\x80\x00\x03\x03", 6);
  peer.send(record + begin + std::string(16'378, 'h'));
  for (int i = 0; i < 2; ++i) peer.send(record + std::string(16'384, 'h'));
  REQUIRE(run_until(loop, [&] {
    peer.read();
    return peer.ended;
  }));
  CHECK(a.has_logged("TLS: the handshake is too long"));
  CHECK(a.hellos.empty());
}

}  // namespace tubed::server_test
