// A node on its disk: a start that is refused, and a node alone.
#include "cluster/node.h"

#include <string>

#include <doctest/doctest.h>

#include "tests/journal/test_disk.h"

namespace tubed::cluster {

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kCluster = 7;

struct Host final : NodeHost {
  Time clock() const override { return now; }
  void send(NodeId to, std::string frame) override { sent.emplace_back(to, std::move(frame)); }
  void node_changed() override {}
  void fetch_state(NodeId from) override { fetched_from = from; }
  void node_failed(const std::string& reason) override { failure = reason; }
  void raft_log_full(bool /*full*/, const std::string& /*reason*/) override {}

  Time now{1h};
  std::vector<std::pair<NodeId, std::string>> sent;
  NodeId fetched_from = 0;
  std::string failure;
};

std::vector<Member> founders(NodeId count) {
  std::vector<Member> members;
  for (NodeId id = 1; id <= count; ++id)
    members.push_back(
        {.id = id, .role = MemberRole::voter, .address = "node " + std::to_string(id)});
  return members;
}

RaftLogOptions log_options() {
  RaftLogOptions options;
  options.file_bytes = 16 << 10;
  options.cluster = kCluster;
  return options;
}

NodeOptions node_options() {
  NodeOptions options;
  options.log = log_options();
  options.kept_entries = 4;
  return options;
}

void run(journal::TestDisk& disk, Node& node, Host& host) {
  for (int i = 0; i < 5; ++i) {
    node.tick();
    disk.run_all();
    host.now += 1ms;
  }
}

std::string refusal(journal::TestDisk& disk, const Applied& base) {
  Host host;
  const auto node = Node::open(disk, host, node_options(), base);
  return node.ok() ? "" : node.error().message;
}

}  // namespace

TEST_CASE("a directory without a state is no member of a cluster") {
  journal::TestDisk disk;
  CHECK(refusal(disk, founding_position(kCluster)) ==
        "the node has no state: it is not a member of a cluster");
}

TEST_CASE("a node alone leads at once, and commits what is on its disk") {
  journal::TestDisk disk;
  REQUIRE(found(disk, log_options(), 1, founders(1)).ok());
  Host host;
  auto opened = Node::open(disk, host, node_options(), founding_position(kCluster));
  REQUIRE(opened.ok());
  Node& node = **opened;
  CHECK(node.leads());
  CHECK(node.lease_end() == kNever);
  EntryWriter writer;
  const Index first = node.submit({writer.finish({.chain = node.tail_chain()})});
  CHECK(first == 2);
  CHECK(node.committed() == 1);
  run(disk, node, host);
  CHECK(node.committed() == 2);
  CHECK(node.applicable() == 2);
  CHECK(host.sent.empty());
}

TEST_CASE("a node refuses a journal that does not fit its raft log") {
  journal::TestDisk disk;
  REQUIRE(found(disk, log_options(), 1, founders(1)).ok());
  Applied last = founding_position(kCluster);
  {
    Host host;
    auto opened = Node::open(disk, host, node_options(), last);
    REQUIRE(opened.ok());
    Node& node = **opened;
    for (int i = 0; i < 20; ++i) {
      EntryWriter writer;
      REQUIRE(node.submit({writer.finish({.chain = node.tail_chain()})}) != 0);
      run(disk, node, host);
    }
    last = {.index = node.last(), .term = node.term(), .chain = node.tail_chain()};
    node.journal_synced(last.index);
    CHECK(node.log().first() == last.index - 3);
    run(disk, node, host);
  }
  CHECK(refusal(disk, last) == "");
  Applied beyond = last;
  beyond.index += 1;
  CHECK(refusal(disk, beyond) ==
        "the raft log has the entries 2 to 21, and the journal ends after 22");
  Applied other = last;
  other.term += 1;
  CHECK(refusal(disk, other) == "the raft log and the journal differ at entry 21");
}

TEST_CASE("a node that has just started is silent to requests for votes") {
  journal::TestDisk disk;
  REQUIRE(found(disk, log_options(), 1, founders(3)).ok());
  Host host;
  auto opened = Node::open(disk, host, node_options(), founding_position(kCluster));
  REQUIRE(opened.ok());
  Node& node = **opened;
  Message vote;
  vote.cluster = kCluster;
  vote.from = 2;
  vote.to = 1;
  vote.type = MessageType::vote;
  vote.term = 2;
  vote.index = 1;
  vote.log_term = 1;
  host.now += 299ms;
  node.receive(encode(vote));
  CHECK(host.sent.empty());
  host.now += 1ms;
  node.receive(encode(vote));
  REQUIRE(host.sent.size() == 1);
  const auto answer = decode(host.sent.front().second);
  REQUIRE(answer);
  CHECK(answer->type == MessageType::vote_result);
  CHECK(answer->granted);
  // The vote is on the disk.
  CHECK((*load_node_state(disk).value()).voted_for == 2);
  // Of another cluster, and for another node.
  vote.cluster = 8;
  node.receive(encode(vote));
  vote.cluster = kCluster;
  vote.to = 3;
  node.receive(encode(vote));
  CHECK(host.sent.size() == 1);
}

TEST_CASE("a fetch is passed on to the host") {
  journal::TestDisk disk;
  REQUIRE(found(disk, log_options(), 1, founders(3)).ok());
  Host host;
  auto opened = Node::open(disk, host, node_options(), founding_position(kCluster));
  REQUIRE(opened.ok());
  Message fetch;
  fetch.cluster = kCluster;
  fetch.from = 3;
  fetch.to = 1;
  fetch.type = MessageType::fetch;
  (*opened)->receive(encode(fetch));
  CHECK(host.fetched_from == 3);
}

}  // namespace tubed::cluster
