// A node of a cluster for the tests of PeerLinks: a host that records its calls, and its links.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <sys/socket.h>

#include "loop/signal.h"
#include "node/peer_links.h"
#include "tests/server/peer_frames.h"

namespace tubed::server_test {

using namespace std::chrono_literals;

inline constexpr std::uint64_t kCluster = 7;

// Too long to matter on a busy machine.
inline constexpr node::PeerLimits kLongLimits = {
    .hello = 1h, .welcome = 1h, .request = 1h, .user_timeout = 1h};

// Dials again soon.
inline constexpr node::PeerLimits kQuick = [] {
  node::PeerLimits limits = kLongLimits;
  limits.retry = 1ms;
  limits.last_retry = 4ms;
  return limits;
}();

struct PeerNode final : node::PeerHost {
  // Nodes have the names a, b, c. `port` 0: any.
  PeerNode(loop::Loop& node_loop, cluster::NodeId node,
           const node::PeerLimits& limits = kLongLimits, std::uint16_t port = 0)
      : loop(node_loop),
        id(node),
        log(
            [this](std::string_view line) {
              lines.emplace_back(line);
              return true;
            },
            [] { return Duration(); }) {
    loop::ignore_broken_pipes();
    auto listening = os::listen_tcp("127.0.0.1", port, 64);
    REQUIRE(listening.ok());
    links = std::make_unique<node::PeerLinks>(loop, log, *this, std::move(*listening), limits);
    facts = {.cluster = kCluster,
             .node = id,
             .address = std::string(1, static_cast<char>('a' + id - 1)) + "@" + links->address(),
             .configuration_index = 5,
             .has_state = true};
    links->set_facts(facts);
  }

  cluster::Member member() const { return {.id = id, .address = facts.address}; }
  std::uint16_t port() const {
    return static_cast<std::uint16_t>(
        std::stoi(facts.address.substr(facts.address.rfind(':') + 1)));
  }
  // A Hello from `from` to this node.
  cluster::Hello hello(cluster::NodeId from,
                       cluster::Purpose purpose = cluster::Purpose::frames) const {
    return {.purpose = purpose,
            .cluster = kCluster,
            .from = from,
            .to = id,
            .address = "x@127.0.0.1:1",
            .configuration_index = 4,
            .name = {},
            .invites = false};
  }
  RawPeer dial() const { return {loop, loop_test::connect_to(links->address())}; }
  bool has_logged(std::string_view text) const {
    return std::any_of(lines.begin(), lines.end(), [text](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  }

  void begin_tick() override { in_tick = true; }
  cluster::WelcomeStatus judge(const cluster::Hello& hello) override {
    CHECK(in_tick);
    hellos.push_back(hello);
    return links->usual_status(hello);
  }
  void on_turned_away(const cluster::Hello& hello, cluster::WelcomeStatus status) override {
    CHECK(std::exchange(in_tick, false));
    turned_away.emplace_back(hello, status);
    then();
  }
  std::string_view on_frame(cluster::NodeId from, std::string_view frame) override {
    CHECK(std::exchange(in_tick, false));
    frames.emplace_back(from, std::string(frame));
    then();
    return fault;
  }
  void on_fetch(const cluster::Hello& hello, loop::Connection connection) override {
    CHECK(std::exchange(in_tick, false));
    fetches.emplace_back(hello, std::move(connection));
  }
  void on_client(const cluster::Hello& hello, loop::Connection connection) override {
    CHECK(std::exchange(in_tick, false));
    clients.emplace_back(hello, std::move(connection));
  }
  void on_request(const cluster::Request& request, Reply reply) override {
    CHECK(std::exchange(in_tick, false));
    requests.emplace_back(request, std::move(reply));
    then();
  }
  bool may_invite(cluster::NodeId member) const override {
    ++dials;
    return member == invited;
  }
  void on_stated_address(const cluster::Member& member, const std::string& address) override {
    CHECK(in_tick);
    stated.emplace_back(member.id, address);
    if (learned.learn(member, address)) links->set_learned(learned.all());
  }
  void on_rejected(cluster::NodeId by, const cluster::Welcome& welcome) override {
    CHECK(std::exchange(in_tick, false));
    rejected.emplace_back(by, welcome);
    then();
  }

  loop::Loop& loop;
  cluster::NodeId id;
  std::vector<std::string> lines;
  os::Log log;
  bool in_tick = false;
  node::PeerFacts facts;
  cluster::NodeId invited = 0;         // by later Hellos
  std::function<void()> then = [] {};  // in calls of the host
  std::string_view fault;              // of frames
  mutable std::size_t dials = 0;       // of links
  std::vector<cluster::Hello> hellos;
  std::vector<std::pair<cluster::Hello, cluster::WelcomeStatus>> turned_away;
  std::vector<std::pair<cluster::NodeId, std::string>> frames;
  std::vector<std::pair<cluster::Hello, loop::Connection>> fetches;
  std::vector<std::pair<cluster::Hello, loop::Connection>> clients;
  std::vector<std::pair<cluster::Request, Reply>> requests;
  std::vector<std::pair<cluster::NodeId, cluster::Welcome>> rejected;
  std::vector<std::pair<cluster::NodeId, std::string>> stated;  // addresses
  node::LearnedAddresses learned{log};                          // not stored
  std::unique_ptr<node::PeerLinks> links;
};

// A listening socket in place of node 2.
struct RawNode {
  explicit RawNode(loop::Loop& loop_of) : loop(loop_of) {}

  cluster::Member member() const { return {.id = 2, .address = "b@" + os::local_address(socket)}; }
  RawPeer accept() const {
    os::Socket accepted;
    CHECK(loop_test::run_until(loop, [&] {
      accepted = os::Socket(::accept4(socket.descriptor(), nullptr, nullptr, SOCK_NONBLOCK));
      return static_cast<bool>(accepted);
    }));
    return {loop, std::move(accepted)};
  }
  RawPeer accept_and_welcome(cluster::WelcomeStatus status = cluster::WelcomeStatus::ok) const {
    RawPeer peer = accept();
    hello = cluster::decode_hello(peer.take_frame());
    CHECK(hello);
    peer.send(encode(
        cluster::Welcome{.status = status, .level = level, .configuration_index = 9, .name = "b"}));
    return peer;
  }

  loop::Loop& loop;
  cluster::Level level = cluster::kFirstLevel;
  os::Socket socket = loop_test::listening();
  mutable std::optional<cluster::Hello> hello;
};

// Returns the status with which node a answers the Hello.
inline std::optional<cluster::WelcomeStatus> answer_to(const PeerNode& node,
                                                       const cluster::Hello& hello) {
  RawPeer peer = node.dial();
  peer.send(encode(hello));
  const auto welcome = cluster::decode_welcome(peer.take_frame());
  if (!welcome) return std::nullopt;
  CHECK(welcome->configuration_index == 5);
  CHECK(welcome->name == "a");
  if (welcome->status != cluster::WelcomeStatus::ok) CHECK(peer.is_closed());
  return welcome->status;
}

// Makes the nodes members of one cluster.
inline void join(const std::vector<PeerNode*>& nodes) {
  std::vector<cluster::Member> members;
  for (const PeerNode* node : nodes) members.push_back(node->member());
  for (const PeerNode* node : nodes) node->links->set_members(members);
}

// Runs the loop until each node is connected to each other.
inline bool all_connected(const std::vector<PeerNode*>& nodes) {
  return loop_test::run_until(nodes.front()->loop, [&] {
    return std::all_of(nodes.begin(), nodes.end(), [&](const PeerNode* from) {
      return std::all_of(nodes.begin(), nodes.end(), [&](const PeerNode* to) {
        return from == to || from->links->is_connected(to->id);
      });
    });
  });
}

}  // namespace tubed::server_test
