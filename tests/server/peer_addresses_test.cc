// Addresses that members state: the file that keeps them, the links that dial them in turn with
// those of the configuration, and the proof that teaching one needs.
#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <random>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "disk/directory_tree.h"
#include "node/learned_addresses.h"
#include "node/own_address.h"
#include "node/state_directory.h"
#include "tests/server/peer_node.h"

namespace tubed::server_test {

using cluster::Member;
using cluster::MemberAddress;
using loop_test::run_ticks;
using loop_test::run_until;
using node::LearnedAddresses;

namespace {

const std::vector<Member> kMembers = {{.id = 1, .address = "a@10.0.0.1:1"},
                                      {.id = 2, .address = "b@10.0.0.2:1"},
                                      {.id = 3, .address = "c@c.tubed:1"}};

struct Lines {
  std::vector<std::string> lines;
  os::Log log{[this](std::string_view line) {
                lines.emplace_back(line);
                return true;
              },
              [] { return Duration(); }};

  std::size_t count(std::string_view text) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        lines, [&](const std::string& line) { return line.find(text) != line.npos; }));
  }
};

// A port that no other process gets, and at which a node can listen several times in turn: the
// socket is bound and does not listen.
class HeldPort {
 public:
  HeldPort() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const bound = reinterpret_cast<sockaddr*>(&address);
    socklen_t bytes = sizeof address;
    const int held = socket_.descriptor();
    REQUIRE(::setsockopt(held, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0);
    REQUIRE(::bind(held, bound, bytes) == 0);
    REQUIRE(::getsockname(held, bound, &bytes) == 0);
    number = ntohs(address.sin_port);
  }

  std::uint16_t number = 0;

 private:
  os::Socket socket_;
};

MemberAddress parsed(const std::string& text) {
  return cluster::parse_member_address(text).value();
}

node::ClusterSecrets secret() {
  return node::ClusterSecrets::parse("tbc_" + std::string(42, 'a') + "A\n", "secret").value();
}

// Nodes a and b, which have the secret.
struct Moved {
  loop::Loop loop;
  PeerNode a{loop, 1, kQuick};
  PeerNode b{loop, 2, kQuick};

  explicit Moved(const node::ClusterSecrets& secrets = secret()) {
    a.links->set_secrets(secrets);
    b.links->set_secrets(secrets);
  }
  // Node b as a member at another address.
  static Member b_at(const std::string& endpoint) { return {.id = 2, .address = "b@" + endpoint}; }
  void join(const Member& as_b) {
    for (const PeerNode* node : {&a, &b}) node->links->set_members({a.member(), as_b});
  }
  bool is_reached() {
    return run_until(loop, [&] { return a.links->is_connected(2); });
  }
};

}  // namespace

TEST_CASE("learned addresses are kept over restarts of the node") {
  const loop_test::Directory place;
  const std::string directory = place.file("");
  Lines lines;
  {
    LearnedAddresses learned(lines.log);
    learned.open(directory, 7);
    CHECK(learned.all().empty());
    CHECK(learned.learn(kMembers[1], "b@10.0.0.9:2"));
    CHECK_FALSE(learned.learn(kMembers[1], "b@10.0.0.9:2"));  // each address is logged once
    CHECK(learned.learn(kMembers[2], "c@[fd00::1]:3"));
    CHECK(lines.count("a member listens at another address than the cluster has") == 2);
    CHECK(lines.count("tubectl cluster set-address b 10.0.0.9:2") == 1);
    learned.store_when_due(Time(std::chrono::seconds(5)));
    // At most once a second.
    CHECK(learned.learn(kMembers[1], "b@10.0.0.10:2"));
    learned.store_when_due(Time(std::chrono::milliseconds(5'999)));
  }
  LearnedAddresses again(lines.log);
  again.open(directory, 7);
  CHECK(again.all() ==
        LearnedAddresses::All{{2, parsed("b@10.0.0.9:2")}, {3, parsed("c@[fd00::1]:3")}});
  CHECK_FALSE(again.learn(kMembers[1], "b@10.0.0.9:2"));
  // The second life of the node in a process.
  CHECK(again.learn(kMembers[1], "b@10.0.0.11:2"));
  again.open(directory, 7);
  CHECK(again.all().at(2) == parsed("b@10.0.0.11:2"));
  // The file of another cluster.
  again.open(directory, 8);
  CHECK(again.all().empty());
  CHECK(lines.count("are lost") == 0);
  // Nothing is left to keep.
  LearnedAddresses last(lines.log);
  last.open(directory, 7);
  last.follow({kMembers[0]});
  CHECK(last.all().empty());
  last.store_when_due(Time());
  CHECK_FALSE(disk::DirectoryTree(directory).exists(node::kAddressesFile).value());
}

TEST_CASE("a member states its own address only, and it ends with the configuration's") {
  Lines lines;
  LearnedAddresses learned(lines.log);
  const loop_test::Directory place;
  learned.open(place.file(""), 7);
  for (const char* const text : {"c@10.0.0.9:2", "x@10.0.0.9:2", "b@10.0.0.9", "b@10.0.0.9:0", "",
                                 "b@10.0.0.2:1", "b@10.0.0.9:2\nc@10.0.0.9:2", "b@10.0.0.300:1"})
    CHECK_FALSE(learned.learn(kMembers[1], text));
  CHECK(learned.all().empty());
  // Another member's address is no fault: that member may have moved as well.
  CHECK(learned.learn(kMembers[1], "b@c.tubed:1"));
  learned.follow(kMembers);
  CHECK(learned.all().size() == 1);
  CHECK(learned.learn(kMembers[1], "b@10.0.0.2:1"));  // it has moved back
  CHECK(learned.all().empty());
  CHECK(learned.learn(kMembers[1], "b@10.0.0.9:2"));
  std::vector<Member> members = kMembers;
  members[1].address = "b@10.0.0.9:2";
  learned.follow(members);
  CHECK(learned.all().empty());
  CHECK(learned.learn(kMembers[2], "c@10.0.0.3:1"));
  members.pop_back();
  learned.follow(members);
  CHECK(learned.all().empty());
}

TEST_CASE("a file of learned addresses that is damaged or torn loses only the addresses") {
  const LearnedAddresses::All addresses = {{2, parsed("b@10.0.0.9:2")}, {3, parsed("c@c.new:1")}};
  const std::string whole = node::encode(7, addresses);
  CHECK(node::decode_addresses(7, whole).value() == addresses);
  CHECK(node::decode_addresses(7, node::encode(7, {})).value().empty());
  CHECK(node::decode_addresses(8, whole).value().empty());
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes)
    CHECK_FALSE(node::decode_addresses(7, whole.substr(0, bytes)).ok());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] ^= 1;
    CHECK_FALSE(node::decode_addresses(7, damaged).ok());
  }
  CHECK_FALSE(node::decode_addresses(7, whole + "\n").ok());

  const loop_test::Directory place;
  REQUIRE(disk::DirectoryTree(place.file("")).store(node::kAddressesFile, whole.substr(3)).ok());
  Lines lines;
  LearnedAddresses learned(lines.log);
  learned.open(place.file(""), 7);
  CHECK(learned.all().empty());
  CHECK(lines.count("learned addresses of other nodes are lost") == 1);
  CHECK(learned.learn(kMembers[1], "b@10.0.0.9:2"));
  learned.store_when_due(Time());
  LearnedAddresses again(lines.log);
  again.open(place.file(""), 7);
  CHECK(again.all().size() == 1);
}

TEST_CASE("a member that has proved the secret is reached where it says that it listens") {
  Moved two;
  two.join(Moved::b_at("127.0.0.1:1"));
  REQUIRE(two.is_reached());
  CHECK(two.a.links->stated_address(2) == two.b.facts.address);
  CHECK(two.a.stated.front() == std::pair(cluster::NodeId{2}, two.b.facts.address));
  CHECK(two.a.links->learned_address(2) == "127.0.0.1:" + std::to_string(two.b.port()));
  CHECK(two.a.links->address_of(Moved::b_at("127.0.0.1:1")) == two.b.facts.address);
  two.a.links->send(2, frame_of(1));
  REQUIRE(run_until(two.loop, [&] { return two.b.frames.size() == 1; }));
  // The configuration gets that address: the connection stays.
  const std::size_t dials = two.a.dials;
  two.join(two.b.member());
  two.a.learned.follow({two.a.member(), two.b.member()});
  two.a.links->set_learned(two.a.learned.all());
  CHECK(two.a.links->is_connected(2));
  CHECK(two.a.links->learned_address(2).empty());
  two.a.links->send(2, frame_of(2));
  REQUIRE(run_until(two.loop, [&] { return two.b.frames.size() == 2; }));
  CHECK(two.a.dials == dials);
}

TEST_CASE("a node that has not proved who it is teaches no address") {
  Moved two((node::ClusterSecrets()));
  two.join(Moved::b_at("127.0.0.1:1"));
  REQUIRE(run_until(two.loop, [&] { return two.b.links->is_connected(1); }));
  const std::size_t enough = two.a.dials + 10;
  REQUIRE(
      run_until(two.loop, [&] { return two.a.dials > enough || two.a.links->is_connected(2); }));
  CHECK_FALSE(two.a.links->is_connected(2));
  CHECK(two.a.stated.empty());
  CHECK(two.a.links->stated_address(2).empty());
  CHECK(two.a.learned.all().empty());
}

TEST_CASE("a stranger that knows the secret teaches no address") {
  Moved two;
  two.b.facts.configuration_index = 9;  // it may be a member in a later configuration
  two.b.links->set_facts(two.b.facts);
  two.a.links->set_members({two.a.member(), {.id = 3, .address = "b@127.0.0.1:1"}});
  two.b.links->set_members({two.a.member(), two.b.member()});
  REQUIRE(run_until(two.loop, [&] { return two.b.links->is_connected(1); }));
  run_ticks(two.loop, 5);
  CHECK(two.a.stated.empty());
}

TEST_CASE("a wrong learned address does not keep a node from being reached at its own") {
  Moved two;
  const PeerNode other(two.loop, 3, kQuick);
  other.links->set_secrets(secret());
  // Node b cannot dial node a, and teach it its address, before it was reached.
  two.b.links->set_members({{.id = 1, .address = "a@127.0.0.1:1"}, two.b.member()});
  // One at which no process listens, and one at which another node does.
  for (const std::string& wrong : {std::string("127.0.0.1:1"), other.links->address()}) {
    two.a.learned.learn(two.b.member(), "b@" + wrong);
    two.a.links->set_members({two.a.member()});
    two.a.links->set_learned(two.a.learned.all());
    // The next link tries the learned address first.
    two.a.links->set_members({two.a.member(), two.b.member()});
    REQUIRE(two.is_reached());
    CHECK(two.a.links->learned_address(2).empty());
    CHECK(two.a.has_logged("not connected to another node"));
  }
}

TEST_CASE("a member that moves again and again, and back, is found each time") {
  loop::Loop loop;
  PeerNode a(loop, 1, kQuick);
  a.links->set_secrets(secret());
  const HeldPort home;
  auto b = std::make_unique<PeerNode>(loop, 2, kQuick, home.number);
  const Member own = b->member();
  const std::uint16_t any = 0;
  for (const std::uint16_t next : {any, any, home.number, any}) {
    b->links->set_secrets(secret());
    for (const PeerNode* node : {&a, b.get()}) node->links->set_members({a.member(), own});
    REQUIRE(run_until(loop, [&] { return a.links->is_connected(2); }));
    CHECK(a.links->learned_address(2).empty() == (b->port() == home.number));
    a.links->send(2, frame_of(1));
    REQUIRE(run_until(loop, [&] { return b->frames.size() == 1; }));
    b.reset();
    REQUIRE(run_until(loop, [&] { return !a.links->is_connected(2); }));
    b = std::make_unique<PeerNode>(loop, 2, kQuick, next);
  }
}

TEST_CASE("nodes that move in any order, and restart all at once, find each other") {
  loop::Loop loop;
  const loop_test::Directory place;
  std::mt19937 random(7);
  constexpr std::size_t kNodes = 3;
  constexpr std::array<const char*, kNodes> kFolders = {"a", "b", "c"};
  std::array<std::unique_ptr<PeerNode>, kNodes> nodes;
  std::array<std::unique_ptr<HeldPort>, kNodes> ports;
  std::vector<Member> members;
  Time now;
  const auto start = [&](std::size_t index) {
    nodes[index] = std::make_unique<PeerNode>(loop, index + 1, kQuick, ports[index]->number);
    PeerNode& node = *nodes[index];
    node.links->set_secrets(secret());
    node.learned.open(place.file(kFolders[index]), kCluster);
  };
  const auto join = [&] {
    for (const auto& node : nodes) {
      node->learned.follow(members);
      node->links->set_members(members);
      node->links->set_learned(node->learned.all());
    }
  };
  const auto all_reached = [&] {
    return run_until(loop, [&] {
      return std::ranges::all_of(nodes, [&](const auto& from) {
        return std::ranges::all_of(nodes, [&](const auto& to) {
          const Member& member = members[to->id - 1];
          return from == to || (from->links->is_connected(to->id) &&
                                from->links->address_of(member) == to->facts.address);
        });
      });
    });
  };
  for (std::size_t index = 0; index < kNodes; ++index) {
    std::filesystem::create_directory(place.file(kFolders[index]));
    ports[index] = std::make_unique<HeldPort>();
    start(index);
    members.push_back(nodes[index]->member());
  }
  join();
  REQUIRE(all_reached());
  std::size_t restarts = 0;
  for (int step = 0; step < 60; ++step) {
    now += std::chrono::seconds(1);
    for (const auto& node : nodes) node->learned.store_when_due(now);
    const std::size_t index = random() % kNodes;
    switch (random() % 3) {
      case 0:  // moves
        nodes[index].reset();
        ports[index] = std::make_unique<HeldPort>();
        start(index);
        break;
      case 1:  // all end, and start where they are
        for (auto& node : nodes) node.reset();
        for (std::size_t each = 0; each < kNodes; ++each) start(each);
        ++restarts;
        break;
      default:  // its address becomes lasting
        members[index] = nodes[index]->member();
    }
    join();
    CAPTURE(step);
    REQUIRE(all_reached());
  }
  CHECK(restarts > 10);
}

TEST_CASE("a node says once that its settings have another address than the cluster") {
  Lines lines;
  node::OwnAddress own("b@10.0.0.9:2");
  const Member same{.id = 2, .address = "b@10.0.0.9:2"};
  const Member other{.id = 2, .address = "b@10.0.0.2:1"};
  constexpr auto kLevel = cluster::kFeatureLevel;
  CHECK(own.at(kLevel, &same, lines.log) == "b@10.0.0.9:2");
  CHECK(own.at(kLevel, nullptr, lines.log) == "b@10.0.0.9:2");
  CHECK(lines.lines.empty());
  for (int times = 0; times < 3; ++times)
    CHECK(own.at(kLevel, &other, lines.log) == "b@10.0.0.9:2");
  REQUIRE(lines.lines.size() == 1);
  CHECK(lines.count("this node listens at another address than the cluster has") == 1);
  CHECK(lines.count("tubectl cluster set-address b 10.0.0.9:2") == 1);
  CHECK(own.other_than("10.0.0.2:1", kLevel) == "10.0.0.9:2");
  CHECK(own.other_than("10.0.0.9:2", kLevel).empty());
  // It moves to its address, and away from it again.
  own.at(kLevel, &same, lines.log);
  own.at(kLevel, &other, lines.log);
  CHECK(lines.lines.size() == 2);
  // Below the level of names, a name is not used.
  node::OwnAddress named("b@b.tubed:2");
  CHECK(named.at(cluster::kLevelOfNames - 1, &other, lines.log) == "b@10.0.0.2:1");
  CHECK(named.other_than("10.0.0.2:1", cluster::kLevelOfNames - 1).empty());
  CHECK(named.other_than("10.0.0.2:1", kLevel) == "b.tubed:2");
}

}  // namespace tubed::server_test
